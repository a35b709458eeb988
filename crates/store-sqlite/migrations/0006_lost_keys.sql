-- Keys of a call whose holder was lost: held until then, and free by themselves after (store §5, effect_grace).
ALTER TABLE locks ADD COLUMN until INTEGER;
