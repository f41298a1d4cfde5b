package namedlimit

import "iter"

// Keeper persists definitions and overrides by commands.
type Keeper interface {
	Load() ([]Definition, error)
	// Keep replaces the definitions, which survive a crash once it returns nil.
	Keep(definitions []Definition) error
	// LoadOverrides returns the overrides.
	LoadOverrides() ([]KeyOverride, error)
	// KeepOverride adds a change of a key's override, which survives a crash once it returns nil. all has the
	// n overrides in force with it, for a compaction.
	KeepOverride(changed KeyOverride, n int, all iter.Seq[KeyOverride]) error
	// Check returns an error if nothing readable is kept.
	Check() error
	// Rewrite writes all again.
	Rewrite(definitions []Definition, all iter.Seq[KeyOverride]) error
}

// KeyOverride is an override by a command.
type KeyOverride struct {
	Limit, Key string
	Policy     Policy
	UntilNs    int64 // 0 for no end
	Removed    bool
}
