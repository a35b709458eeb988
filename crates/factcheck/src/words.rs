//! The tables of plain words by which an answer is read. They stay small: what is not in them is not judged.

use crate::claims::FileDeed;

/// Whether a list of words has this word.
pub fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == word)
}

pub const EXTENSIONS: &str = "rs py js ts tsx jsx sh bash go c h cc cpp hpp java kt rb php md txt toml yaml yml json \
    lock html css sql xml cfg ini conf env swift cs vue gradle cmake csv log pl r rst patch";
pub const FILE_NAMES: &str = "Makefile Dockerfile LICENSE Justfile Gemfile .gitignore .dockerignore go.mod go.sum";
/// Names with the extension of a file that are none: products and members of objects.
pub const NO_FILES: &str = "node.js vue.js next.js react.js express.js d3.js console.log process.env math.log";
pub const FOLDERS: &str = "src lib bin scripts script tests test docs app crates packages tools examples config";
/// What a heading or a label says above what is only to be, and what others did.
pub const PLANS: &str = "plan plans todo to-do next remaining remains left goal goals requirements expected phase \
    proposal proposed suggest suggested suggestions would should could will need needs needed must checklist how if \
    once wanted not missing unverified untested false wrong open pending skipped message description draft";
pub const OTHERS_WORK: &str = "changelog release history commits log shows says pr upstream";
pub const TESTS: &str = "test tests suite suites spec specs assertion assertions unittest pytest jest vitest \
    verification testing";
pub const BUILDS: &str = "build builds compilation compiles compiled";
pub const LINTS: &str = "lint lints linter linting clippy eslint ruff flake8 pylint rubocop";
pub const TYPES: &str = "typecheck typechecks type-check type-checks types mypy pyright tsc";
pub const TOOLS: &str = "mypy pyright tsc eslint ruff flake8 pylint rubocop pytest jest vitest unittest";
pub const SUITES: &str = "unit integration e2e end-to-end acceptance smoke functional browser contract doc";
pub const PRONOUNS: &str = "it they these those all everything both which each them result one it's that status";
/// Good news, by itself and only behind a word such as "is"; and bad news.
pub const GOOD: &str = "pass passes passed passing green succeed succeeds succeeded success successful successfully ✓ \
    compiles compiled typechecks type-checks passent grün";
pub const FAIRLY_GOOD: &str = "ok okay good fine great clean cleanly happy works worked working work well through \
    clear hold holds out completed finished agree order confirmed verified correct right";
pub const COPULAS: &str = "is are was were be been : all looks look looked came comes back run runs ran went go goes \
    gone now still says fully very checks check again test tests suite it everything assertion assertions fix exits \
    finished and not build builds compiles prints printed reports";
pub const BAD: &str = "fail fails failed failing failure failures error errors red broken break breaks crash crashes \
    crashed panic panics ✗ wrong regression regressions warning warnings issue issues problem problems unsuccessful \
    incorrect unverified untested assertionerror mistake off open complaints";
pub const NEGATIONS: &str = "no not never none neither nor without cannot nothing nobody zero 0 unable hardly barely \
    false nicht kein keine ningún non unlikely untrue longer";
/// What makes a sentence a wish, a plan, a doubt or an order.
pub const UNSURE: &str = "would should could might may will won't can cannot can't shall must need needs needed want \
    wants wanted plan plans planning going expect expects expected hopefully hope likely probably supposed ensure \
    whether if until unless please thought believed believe think assume assuming claiming try tried trying attempt \
    attempted goal aim todo pending require requires required wish ought i'd i'll we'll it'll let let's suppose doubt \
    unsure unclear asked saying claim mistakenly depends how seems looked unlikely love point precondition seldom";
/// Where something holds of a part, and where it holds elsewhere or at another time.
pub const PARTS: &str = "most some several few many half nearly almost partially partly mostly other remaining rest \
    except excluding sometimes usually often individually only 75% head sauf save";
pub const ELSEWHERE: &str = "yesterday ago upstream previously originally formerly initially earlier reverted undone \
    stashed disabled ignored skipped excluded commented past once before";
pub const AWAY_FROM: &str = "main master machine reverted undone stashed disabled ignored skipped excluded commented \
    out";
/// Who else says or does something, and how.
pub const OTHERS: &str = "you user users issue ticket readme docs documentation comment he she they task description \
    author pr changelog diff log history somebody someone maintainer ⟦quoted⟧ team";
pub const SAYS: &str = "said says say saying mentioned mentions claims claimed asks asked wrote reports reported \
    states stated told requested wanted shows";
pub const ORDERS: &str = "do use apply change replace rename run set add remove delete put install update edit make \
    try move copy revert commit push merge create fix call todo plan phase";
pub const OBJECTS: &str = "the a an this that it your all both line : bug";
/// What is the whole of something, and what takes back what stands before it.
pub const WHOLES: &str = "all everything nothing test tests files checks";
pub const LATER: &str = "if unless whenever would should could might may depends requires until worse";
/// Words behind which another clause begins.
pub const JOINS: &str = ", ( ) and but so then while although though because however yet which whereas & since whose";
/// What may stand before a verb without being its subject.
pub const ADVERBS: &str = "also then now finally just already successfully have has had been all both therefore thus \
    again quickly ✓ and so did do next lastly additionally afterwards newly simply fully previously";
pub const EXITS: &str = "code status exits exit exited returns returned";
pub const ONE_OF: &str = "one two three four five they others another rest some it's it";
pub const VERIFIED: &str = "verified confirmed validated tested double-checked";
pub const COUNTED: &str = "fail fails failed failures failing failure passed passing pass passes green";
pub const FILLERS: &str = "is are was no 0 zero not : came back none nothing";
pub const DETERMINERS: &str = "all the these my our your both every each automated quality";
/// What is handed on where something "passes" it; and what fails as it shall.
pub const HANDED: &str = "to a an its into it them this that over two three values value arguments data wrong none the";
pub const INTENDED: &str = "intended designed expected design purpose loudly gracefully when if unless clear";
/// Deeds, and what they are done to.
pub const FIXES: &str = "fixed resolved repaired solved corrected squashed addressed eliminated fixes resolves solves \
    fixing resolving solving gone";
pub const FIXABLE: &str = "bug bugs issue issues problem problems error errors crash crashes regression regressions \
    failure failures test tests panic typo typos warning warnings build suite parser code exception assertion logic \
    operator off-by-one script it this that everything all both they these those fix change edit bug's it's";
pub const COMMITTABLE: &str = "change changes fix fixes work code file files edit edits update updates patch feature \
    branch commit commits tests it this that everything all both they these those";
pub const WORK: &str = "file files test tests helper helpers function functions method code fix change changes check \
    checks comment entry line lines import imports documentation docs example examples class module dependency bug \
    script logic implementation type summary report output result results patch edit edits configuration config";
pub const FILE_VERBS: [(&str, FileDeed); 5] = [
    ("created generated scaffolded new", FileDeed::Created),
    ("added wrote written saved overwrote implemented copied put placed inserted appended", FileDeed::Wrote),
    (EDITS, FileDeed::Edited),
    ("deleted removed wiped", FileDeed::Deleted),
    ("renamed moved", FileDeed::Renamed),
];
const EDITS: &str = "edited updated modified changed patched refactored adjusted amended extended rewrote rewritten \
    simplified tweaked reworked touched cleaned replaced introduced applied made bumped improved swapped changes";
pub const RELATIVES: &str = "that which who of you your he she when where known with";
pub const PUTS: &str = "put placed inserted appended replaced introduced applied made bumped improved swapped";
pub const HOLDS: &str = "contains contain has have includes include holds uses reads";
pub const GIVEN: &str = "been no not to only callers users references two three what";
pub const WORDING: &str = "typo typos spelling wording formatting comment comments docs documentation grammar readme";
/// What may stand before a file, behind a verb or a place, and what leads away from it.
pub const LEADS: &str = "the file files script both old new a ✓ line of 1 2 3";
pub const PLACED: &str = "the a an new file files module script folder directory existing both called named your our \
    its my this old up config : top end bottom start beginning";
pub const AWAY: &str = "using with by like via per against than after that where before under how when if because \
    instead rather except based following not see modelled";
pub const POINTS: &str = "link links reference references call calls path import imports redirect similar dependency";
pub const KINDS: &str = "files support format syntax handling parsing extension references paths";
pub const PURPOSES: &str = "use call import handle fix reflect match mention the";
/// Programs that need no marks to be known, and words behind a command that are none of it.
pub const PROGRAMS: &str = "pytest jest vitest mocha rspec tox eslint mypy ruff make cargo npm yarn pnpm go git docker \
    sh bash python python3 node ruby";
pub const BEHIND_COMMANDS: &str = ": again twice successfully to before after with without as too first on in";
pub const RUNS: &str = "ran re-ran reran executed run running re-running rerun re-run executing";
pub const HISTORY: &str = "always often every each whenever startup exit midnight march pr first template year years \
    week weeks when while back initial version snippet below above here there yourself newer changelog friday monday";
