//! Plugins: what brings tools to a location (tool-contract §7).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use portcullis_base::{Clock, IdGen, LocationId};
use portcullis_contract::ToolOrigin;
use portcullis_pipeline::{Placement, Registrar, RegistrationGuard};
use tokio::sync::Mutex;

use crate::RuntimeError;
use crate::runtime::Runtime;

/// Brings tools to every location that it is installed in.
#[async_trait]
pub trait Plugin: Send + Sync {
    /// Its name: the origin of its tools is `plugin:<name>`.
    fn name(&self) -> &str;

    /// Builds its tools with the services of one location and registers them. It runs once for a location, after the
    /// built-ins are registered there. A tool that takes the name of a built-in stands over it.
    ///
    /// # Errors
    /// If it cannot work there. Nothing of it is registered then, once the scope that it made is dropped.
    async fn install(&self, services: LocationServices) -> Result<PluginScope, RuntimeError>;
}

/// What a plugin gets of a location.
pub struct LocationServices {
    /// The right to register tools there.
    pub registrar: Registrar,
    /// The folder that is mounted at `/workspace`; none where sessions have no folder.
    pub workspace: Option<PathBuf>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where ids come from.
    pub ids: Arc<dyn IdGen>,
}

/// What a plugin keeps in one location. Its tools are gone when it is dropped.
#[derive(Default)]
pub struct PluginScope {
    guards: Vec<RegistrationGuard>,
}

impl PluginScope {
    /// Keeps a contribution registered for as long as the plugin is installed.
    pub fn hold(&mut self, guard: RegistrationGuard) {
        self.guards.push(guard);
    }
}

/// The plugins of a process, by location and name.
pub(crate) type Plugins = Arc<Mutex<HashMap<(LocationId, String), PluginScope>>>;

impl Runtime {
    /// Installs a plugin in the location of this runtime. One that is installed there already stays as it is.
    ///
    /// # Errors
    /// What the plugin says. Nothing of it is registered then.
    pub async fn install(&self, plugin: &dyn Plugin) -> Result<(), RuntimeError> {
        let place = (self.location, plugin.name().to_owned());
        // Held while it installs: of two who come at once one installs it.
        let mut installed = self.process.plugins.lock().await;
        if installed.contains_key(&place) {
            return Ok(());
        }
        let origin = ToolOrigin::Plugin(plugin.name().to_owned());
        let services = LocationServices {
            registrar: self.gate.registry().registrar(Placement::Location(self.location), origin),
            workspace: self.workspace.clone(),
            clock: Arc::clone(&self.process.clock),
            ids: Arc::clone(&self.process.ids),
        };
        let scope = plugin.install(services).await?;
        installed.insert(place, scope);
        Ok(())
    }

    /// Takes a plugin out of the location of this runtime. Calls that run go on; calls of its tools that come later are
    /// stale. Gives whether it was installed.
    pub async fn uninstall(&self, name: &str) -> bool {
        self.process.plugins.lock().await.remove(&(self.location, name.to_owned())).is_some()
    }
}
