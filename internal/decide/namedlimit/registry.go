package namedlimit

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/zones"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// Config configures a Registry. All but Log may be zero.
type Config struct {
	Path      string // of the file with limits; "" for none
	Read      ReadFile
	Keeper    Keeper // of definitions by commands; nil for none
	Calendars *calendar.Set
	Now       func() int64                    // Unix nanoseconds; nil for the time of the system
	Refusal   func() error                    // why commands may change nothing now; nil for never
	Spent     func(limit string) store.Spends // by day; nil for nothing
	Log       *slog.Logger
}

// ReadFile returns all definitions of a file, or none and an error. whole reports a final newline.
type ReadFile func() (d Definitions, whole bool, err error)

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

var (
	ErrNoFile = errors.New("the server has no file of limits; start it with --limits-file. Files of --envoy-config reload by themselves, and by SIGHUP")
	ErrBusy   = errors.New("too many changes of limits wait for the disk; try again later")
)

const maxChanges = 64

// Registry holds the limits in force.
type Registry struct {
	config     Config
	utc        *calendar.Calendar
	current    atomic.Pointer[table]
	changes    chan struct{} // one element for each change under way
	overridden atomic.Int64  // number of overrides by commands
	reloads    struct {
		done, failed atomic.Uint64
		lastFailed   atomic.Bool
	}

	mu          sync.Mutex // rank 25: guards the fields below; held while writing to disk
	byFile      map[string]Definition
	byCommand   map[string]Definition
	plans       map[string][]Rule // of the file
	planDigests []replicas.Definition
	overrides   map[string]map[string]*KeyOverride // by commands, by limit and key
	whole       bool                               // the file had a final newline
	unsure      bool                               // about the directory's contents, after a failed write
	unsureKeys  bool                               // about the file of overrides, after a failed write
	closed      bool
	recorded    recorded     // for replicas
	led         []Definition // of a replica: all that its leader has defined by commands
}

// Reloads reports attempts to read the file, including the first.
type Reloads struct {
	Done, Failed uint64
	LastFailed   bool
}

func New(c Config) *Registry {
	if c.Now == nil {
		c.Now = func() int64 { return time.Now().UnixNano() }
	}
	if c.Calendars == nil {
		c.Calendars = calendar.NewSet(&calendar.Wall{}, zones.Load)
	}
	r := &Registry{
		config: c, changes: make(chan struct{}, maxChanges),
		byFile: map[string]Definition{}, byCommand: map[string]Definition{}, overrides: map[string]map[string]*KeyOverride{},
	}
	r.utc, _ = c.Calendars.Of(calendar.Spec{Every: calendar.Day})
	r.current.Store(newTable(nil))
	return r
}

// Lookup returns a limit in force now, or nil.
func (r *Registry) Lookup(name []byte) *Limit { return r.current.Load().find(name) }

func (r *Registry) Calendars() *calendar.Set { return r.config.Calendars }

// All returns all limits by name.
func (r *Registry) All() []*Limit {
	limits := r.Limits()
	return limits.All()
}

// NumOverrides returns the number of overrides by commands, ended ones included until they are removed.
func (r *Registry) NumOverrides() int { return int(r.overridden.Load()) }

// Set defines a limit persistently.
func (r *Registry) Set(d Definition) error { return r.set(d, false) }

// SetShadow is Set of a limit that must have these rules already: only Shadow changes. Options that are left
// out are those of the limit.
func (r *Registry) SetShadow(d Definition) error { return r.set(d, true) }

func (r *Registry) set(d Definition, sameRules bool) error {
	if err := d.Check(r.config.Calendars); err != nil {
		return err
	}
	return r.command(func() error {
		if err := r.ofCommandsLocked(d.Name); err != nil {
			return err
		}
		before, known := r.byCommand[d.Name]
		if sameRules {
			if err := d.agree(&before); err != nil {
				return err
			}
		}
		if known && before.Equal(&d) && !r.unsure {
			return nil
		}
		if n := len(r.byFile) + len(r.byCommand); !known && n >= MaxNames {
			return fmt.Errorf("%d limits exist, the maximum; delete one first", n)
		}
		next := maps.Clone(r.byCommand)
		next[d.Name] = d
		return r.keepLocked(next, d.Name)
	})
}

// Delete deletes a limit persistently, and reports whether there was one.
func (r *Registry) Delete(name string) (found bool, err error) {
	err = r.command(func() error {
		if err := r.ofCommandsLocked(name); err != nil {
			return err
		}
		if _, found = r.byCommand[name]; !found && !r.unsure {
			return nil
		}
		next := maps.Clone(r.byCommand)
		delete(next, name)
		return r.keepLocked(next, name)
	})
	return found, err
}

// Reload reads the file again: all of its limits, or none on an error. The log has it, and who asked for it.
func (r *Registry) Reload(by ...any) error {
	if r.config.Path == "" {
		return ErrNoFile
	}
	err := r.change(func() error { return r.reloadLocked(by) })
	if err != nil && r.reloads.done.Load() > 0 { // the opener of the registry returns the first error
		r.config.Log.With(by...).Error("cannot use the file of limits; they stay as they were", "error", err,
			"hint", "correct it and send SIGHUP, or CL.LIMIT RELOAD")
	}
	return err
}

// command makes a command's change. After a refusal has begun, TakeRecorded returns all changes before it.
func (r *Registry) command(do func() error) error {
	return r.change(func() error {
		if r.config.Refusal != nil {
			if err := r.config.Refusal(); err != nil {
				return err
			}
		}
		return do()
	})
}

// change makes a change after those under way.
func (r *Registry) change(do func() error) error {
	select {
	case r.changes <- struct{}{}:
	default:
		return ErrBusy
	}
	defer func() { <-r.changes }()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.New("the server is shutting down")
	}
	return do()
}

// Close ends changes and waits for the current one.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// Reloads never waits for the disk.
func (r *Registry) Reloads() Reloads {
	return Reloads{r.reloads.done.Load(), r.reloads.failed.Load(), r.reloads.lastFailed.Load()}
}

// ofCommandsLocked refuses to change a limit defined by the file.
func (r *Registry) ofCommandsLocked(name string) error {
	if _, ok := r.byFile[name]; ok {
		return fmt.Errorf("the limit '%s' is defined in %s; change it there, and send CL.LIMIT RELOAD or SIGHUP", name, r.config.Path)
	}
	return nil
}

// Load reads the definitions by commands.
func (r *Registry) Load() error {
	if r.config.Keeper == nil {
		return nil
	}
	kept, err := r.config.Keeper.Load()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range kept {
		r.byCommand[d.Name] = d
	}
	overrides, err := r.config.Keeper.LoadOverrides()
	if err != nil {
		return err
	}
	for _, o := range overrides {
		r.setOverrideLocked(o)
	}
	r.publishLocked()
	return nil
}

// Rewrite writes the definitions by commands again if there are any or the file is missing.
func (r *Registry) Rewrite() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.byCommand)+r.NumOverrides() == 0 && r.config.Keeper.Check() == nil {
		return nil
	}
	err := r.config.Keeper.Rewrite(sortedByName(r.byCommand), r.eachOverrideLocked())
	r.unsure = err != nil
	return err
}

func sortedByName(definitions map[string]Definition) []Definition {
	sorted := make([]Definition, 0, len(definitions))
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		sorted = append(sorted, definitions[name])
	}
	return sorted
}

func (r *Registry) writeLocked(definitions map[string]Definition) error {
	if r.config.Keeper == nil {
		return nil
	}
	err := r.config.Keeper.Keep(sortedByName(definitions))
	r.unsure = err != nil
	return err
}

// keepLocked writes the definitions by commands and then publishes the one that has changed.
func (r *Registry) keepLocked(next map[string]Definition, changed string) error {
	if err := r.writeLocked(next); err != nil {
		return fmt.Errorf("the data directory cannot be written, and nothing was changed: %w", err)
	}
	r.byCommand = next
	r.recorded.definitionsLocked()
	before := r.current.Load()
	now := slices.DeleteFunc(before.all(), func(l *Limit) bool { return l.Name == changed })
	if d, ok := next[changed]; ok {
		now = append(now, r.builderLocked().limit(d, ByCommand, before.find([]byte(changed)), r.overrides[changed]))
	}
	r.storeLocked(now)
	return nil
}

func (r *Registry) reloadLocked(by []any) error {
	read, whole, err := r.config.Read()
	byFile := read.Limits
	if err == nil {
		err = r.acceptLocked(byFile, whole)
	}
	r.reloads.lastFailed.Store(err != nil)
	if err != nil {
		r.reloads.failed.Add(1)
		return err
	}
	before, isFirst := r.byFile, r.reloads.done.Add(1) == 1
	r.byFile, r.plans, r.planDigests, r.whole = byFile, read.Plans, digestPlans(read.Plans), whole
	r.takeOverLocked()
	r.publishLocked()
	if !isFirst { // the opener of the registry logs the first reading
		r.logReloadLocked(before, by)
	}
	r.warnOfMissingLocked()
	return nil
}

// acceptLocked refuses too many limits, and a file that may still be written.
func (r *Registry) acceptLocked(byFile map[string]Definition, whole bool) error {
	if r.whole && !whole {
		return fmt.Errorf("%s does not end with a newline, as it did, so it may be in the middle of being written: end its last line", r.config.Path)
	}
	n := len(byFile)
	for name := range r.byCommand {
		if _, ok := byFile[name]; !ok {
			n++
		}
	}
	if n > MaxNames {
		return fmt.Errorf("%s: %d limits with those defined by commands; the maximum is %d", r.config.Path, n, MaxNames)
	}
	return nil
}

// takeOverLocked drops definitions by commands that the file now has. On a replica, those of the leader that
// the file no longer has are in force again.
func (r *Registry) takeOverLocked() {
	next := maps.Clone(r.byCommand)
	for _, name := range slices.Sorted(maps.Keys(r.byCommand)) {
		if _, ok := r.byFile[name]; ok {
			r.config.Log.Info("a limit set by CL.LIMIT SET now comes from the file", "limit", name, "file", r.config.Path)
			delete(next, name)
		}
	}
	isShorter := len(next) < len(r.byCommand)
	if isLonger := r.uncoverLocked(next); !isShorter && !isLonger {
		return
	}
	if err := r.writeLocked(next); err != nil {
		r.config.Log.Error("cannot persist that these limits now come from the file", "error", err)
	}
	r.byCommand = next
	r.recorded.definitionsLocked()
}

func (r *Registry) builderLocked() *builder {
	return &builder{calendars: r.config.Calendars, plans: r.plans}
}

// publishLocked puts all definitions in force.
func (r *Registry) publishLocked() {
	before, build := r.current.Load(), r.builderLocked()
	now := make([]*Limit, 0, len(r.byFile)+len(r.byCommand))
	for source, definitions := range [...]map[string]Definition{ByCommand: r.byCommand, ByFile: r.byFile} {
		for name, d := range definitions {
			now = append(now, build.limit(d, Source(source), before.find([]byte(name)), r.overrides[name]))
		}
	}
	r.storeLocked(now)
}

func (r *Registry) storeLocked(all []*Limit) {
	t := newTable(all)
	t.byFile, t.reload, t.digests = r.byFile, uint32(r.reloads.done.Load()), r.digestsLocked(all)
	r.current.Store(t)
}

func (r *Registry) logReloadLocked(before map[string]Definition, by []any) {
	var added, removed, changed int
	for name, d := range r.byFile {
		was, known := before[name]
		switch {
		case !known:
			added++
		case !was.Equal(&d):
			changed++
		}
	}
	for name := range before {
		if _, ok := r.byFile[name]; !ok {
			removed++
		}
	}
	r.config.Log.With(by...).Info("limits read", "file", r.config.Path, "limits", len(r.byFile), "added", added, "changed", changed, "removed", removed)
}
