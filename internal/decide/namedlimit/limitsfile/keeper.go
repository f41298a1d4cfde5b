package limitsfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"sync"
	"time"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/limiter/calendar"
)

// keeper keeps LIMITS and OVERRIDES in a data directory, a namedlimit.Keeper. It belongs to one goroutine at
// a time.
type keeper struct {
	dir           disk.Dir
	repair        bool
	calendars     *calendar.Set
	log           *slog.Logger
	keptLimits    func() // called once, with a new file
	keptOverrides func() // called once, with a new file
	overrides     overridesFile
}

func newKeeper(c *Config) *keeper {
	kept := c.Kept
	if kept == nil {
		kept = func() {}
	}
	return &keeper{
		dir: c.Dir, repair: c.Repair, calendars: c.Calendars, log: c.Log,
		keptLimits: sync.OnceFunc(kept), keptOverrides: sync.OnceFunc(kept),
	}
}

func (k *keeper) Load() ([]namedlimit.Definition, error) {
	kept, err := readKept(k.dir)
	err = k.judge(KeptName, "the limits defined by commands", "the limits of CL.LIMIT SET", err)
	if err != nil {
		return nil, err
	}
	for i := range kept {
		if kept[i].Plan != "" { // whose rules are the registry's
			continue
		}
		if err := kept[i].Check(k.calendars); err != nil {
			return nil, fmt.Errorf("%s: the limit %s: %w", KeptName, kept[i].Name, err)
		}
	}
	return kept, nil
}

// judge advises on an error of reading a file. A damaged one is set aside if that is wanted.
func (k *keeper) judge(name, without, drops string, err error) error {
	if errors.Is(err, persist.ErrDamaged) && k.repair {
		k.log.Warn("a file in the data directory is damaged; setting it aside, without "+without, "file", name, "error", err)
		return disk.SetAside(k.dir, name)
	}
	newer := (*persist.NewerError)(nil)
	switch {
	case errors.As(err, &newer):
		return newer.Advise()
	case errors.Is(err, persist.ErrDamaged):
		return fmt.Errorf("%w; restore %s from a backup, or start with --data-recover, which sets it aside and drops %s", err, name, drops)
	}
	return err
}

func (k *keeper) Keep(definitions []namedlimit.Definition) error {
	err := disk.Replace(k.dir, KeptName, keptText(definitions))
	if err == nil {
		k.keptLimits()
	}
	return err
}

func (k *keeper) LoadOverrides() ([]namedlimit.KeyOverride, error) {
	kept, err := readOverrides(k.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, k.judge(OverridesName, "the overrides by commands", "the overrides of CL.LIMIT OVERRIDE", err)
	}
	for _, p := range kept.policies {
		if p.Plan != "" {
			continue
		}
		if err := p.Check(k.calendars); err != nil {
			return nil, fmt.Errorf("%s: %w", OverridesName, err)
		}
	}
	if t := kept.tail; t.Bytes > 0 {
		k.log.Warn("the last change of an override is dropped: "+t.String(), "file", t.File, "from_byte", t.At, "bytes", t.Bytes)
	}
	k.overrides.known, k.overrides.size = true, kept.size
	return kept.sorted(), nil
}

// Check returns an error if a file has disappeared.
func (k *keeper) Check() error { return cmp.Or(k.dir.Check(KeptName), k.checkOverrides()) }

// Rewrite writes both files again.
func (k *keeper) Rewrite(definitions []namedlimit.Definition, all iter.Seq[namedlimit.KeyOverride]) error {
	return cmp.Or(k.Keep(definitions), k.rewriteOverrides(all))
}

// anyZone returns calendars for checks that do not depend on the machine's time zones.
func anyZone() *calendar.Set {
	return calendar.NewSet(&calendar.Wall{}, func(string) (*time.Location, error) { return time.UTC, nil })
}
