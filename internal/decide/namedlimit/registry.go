package namedlimit

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"cellserver/internal/limiter"
)

// Config is what a Registry needs.
type Config struct {
	File   File   // which defines limits; nil for none
	Keeper Keeper // of what commands define; nil for none
	Log    *slog.Logger
}

// File is a file that defines limits.
type File interface {
	Path() string
	// Read returns all definitions, or none if anything is wrong with one. whole says that the file ends with
	// a newline.
	Read() (definitions map[string]Definition, whole bool, err error)
}

// Keeper keeps what commands define.
type Keeper interface {
	// Load returns what is kept.
	Load() ([]Definition, error)
	// Keep replaces what is kept. When it returns nil, the definitions survive a crash.
	Keep(definitions []Definition) error
	// Check returns an error if nothing is kept, or if it cannot be read.
	Check() error
}

// ErrNoFile is that there is nothing to reload.
var ErrNoFile = errors.New("the server has no file of limits; start it with --limits-file")

// ErrBusy is that too many changes wait for the disk.
var ErrBusy = errors.New("too many changes of limits wait for the disk; try again later")

// maxChanges is how many changes may wait for one another.
const maxChanges = 64

// Registry is the limits that there are.
type Registry struct {
	config  Config
	current atomic.Pointer[map[string]*Limit]
	changes chan struct{} // has as many as are under way
	reloads struct {
		done, failed atomic.Uint64
		lastFailed   atomic.Bool
	}

	mu        sync.Mutex // guards all below; held while the disk is written
	byFile    map[string]Definition
	byCommand map[string]Definition
	whole     bool // the file ended with a newline
	unsure    bool // what the directory has, for writing it has failed
	closed    bool
}

// Reloads is what became of the attempts to read the file, beginning with that at the start.
type Reloads struct {
	Done, Failed uint64
	LastFailed   bool
}

// New returns a Registry without limits.
func New(c Config) *Registry {
	r := &Registry{config: c, changes: make(chan struct{}, maxChanges), byFile: map[string]Definition{}, byCommand: map[string]Definition{}}
	r.current.Store(&map[string]*Limit{})
	return r
}

// Lookup returns the limit of a name, or nil.
func (r *Registry) Lookup(name []byte) *Limit { return (*r.current.Load())[string(name)] }

// All returns all limits by name.
func (r *Registry) All() []*Limit {
	return slices.SortedFunc(maps.Values(*r.current.Load()), func(a, b *Limit) int { return cmp.Compare(a.Name, b.Name) })
}

// Len is how many limits there are.
func (r *Registry) Len() int { return len(*r.current.Load()) }

// Set defines a limit. When it returns nil, that is kept.
func (r *Registry) Set(d Definition) error {
	if err := d.Check(); err != nil {
		return err
	}
	return r.change(func() error {
		if err := r.ofCommandsLocked(d.Name); err != nil {
			return err
		}
		before, known := r.byCommand[d.Name]
		if known && before.Equal(&d) && !r.unsure {
			return nil
		}
		if n := len(r.byFile) + len(r.byCommand); !known && n >= MaxNames {
			return fmt.Errorf("there are %d limits, which is the most; delete one first", n)
		}
		next := maps.Clone(r.byCommand)
		next[d.Name] = d
		return r.keepLocked(next)
	})
}

// Delete forgets a limit, and reports whether there was one. When it returns, that is kept.
func (r *Registry) Delete(name string) (found bool, err error) {
	err = r.change(func() error {
		if err := r.ofCommandsLocked(name); err != nil {
			return err
		}
		if _, found = r.byCommand[name]; !found && !r.unsure {
			return nil
		}
		next := maps.Clone(r.byCommand)
		delete(next, name)
		return r.keepLocked(next)
	})
	return found, err
}

// Reload reads the file again: all limits in it, or none if anything is wrong with one.
func (r *Registry) Reload() error {
	if r.config.File == nil {
		return ErrNoFile
	}
	return r.change(r.reloadLocked)
}

// change makes a change, behind those that are under way.
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

// Close has no more changes made, and waits for the one that is under way.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// Reloads returns what became of the attempts to read the file. It never waits for the disk.
func (r *Registry) Reloads() Reloads {
	return Reloads{r.reloads.done.Load(), r.reloads.failed.Load(), r.reloads.lastFailed.Load()}
}

// ofCommandsLocked refuses to change what the file defines.
func (r *Registry) ofCommandsLocked(name string) error {
	if _, ok := r.byFile[name]; ok {
		return fmt.Errorf("the limit '%s' is defined in %s; change it there, and send CL.LIMIT RELOAD or SIGHUP", name, r.config.File.Path())
	}
	return nil
}

// Load takes in what commands have defined before the last end of the server.
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
	r.publishLocked()
	return nil
}

// Rewrite writes what commands have defined once more, if there is something or the file is gone.
func (r *Registry) Rewrite() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.byCommand) == 0 && r.config.Keeper.Check() == nil {
		return nil
	}
	return r.writeLocked(r.byCommand)
}

func (r *Registry) writeLocked(definitions map[string]Definition) error {
	if r.config.Keeper == nil {
		return nil
	}
	sorted := make([]Definition, 0, len(definitions))
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		sorted = append(sorted, definitions[name])
	}
	err := r.config.Keeper.Keep(sorted)
	r.unsure = err != nil
	return err
}

// keepLocked writes what commands have defined, and then has it hold.
func (r *Registry) keepLocked(next map[string]Definition) error {
	if err := r.writeLocked(next); err != nil {
		return fmt.Errorf("the data directory cannot be written, and nothing was changed: %w", err)
	}
	r.byCommand = next
	r.publishLocked()
	return nil
}

func (r *Registry) reloadLocked() error {
	byFile, whole, err := r.config.File.Read()
	if err == nil {
		err = r.acceptLocked(byFile, whole)
	}
	r.reloads.lastFailed.Store(err != nil)
	if err != nil {
		r.reloads.failed.Add(1)
		return err
	}
	r.reloads.done.Add(1)
	r.logReloadLocked(byFile)
	r.byFile, r.whole = byFile, whole
	r.takeOverLocked()
	r.publishLocked()
	return nil
}

// acceptLocked refuses a file that may be in the middle of being written, and more limits than there may be.
func (r *Registry) acceptLocked(byFile map[string]Definition, whole bool) error {
	if r.whole && !whole {
		return fmt.Errorf("%s does not end with a newline, as it did, so it may be in the middle of being written: end its last line", r.config.File.Path())
	}
	n := len(byFile)
	for name := range r.byCommand {
		if _, ok := byFile[name]; !ok {
			n++
		}
	}
	if n > MaxNames {
		return fmt.Errorf("%s: with those that commands have defined there would be %d limits; %d is the most", r.config.File.Path(), n, MaxNames)
	}
	return nil
}

// takeOverLocked forgets what commands have defined and the file defines now.
func (r *Registry) takeOverLocked() {
	next := maps.Clone(r.byCommand)
	for _, name := range slices.Sorted(maps.Keys(r.byCommand)) {
		if _, ok := r.byFile[name]; ok {
			r.config.Log.Info("a limit that was defined by CL.LIMIT SET is the file's from now on", "limit", name, "file", r.config.File.Path())
			delete(next, name)
		}
	}
	if len(next) == len(r.byCommand) {
		return
	}
	if err := r.writeLocked(next); err != nil {
		r.config.Log.Error("cannot write to the data directory that limits are the file's now; at the next start they are if they are still in the file", "error", err)
	}
	r.byCommand = next
}

// publishLocked has the definitions hold.
func (r *Registry) publishLocked() {
	before := *r.current.Load()
	now := make(map[string]*Limit, len(r.byFile)+len(r.byCommand))
	for source, definitions := range [...]map[string]Definition{ByCommand: r.byCommand, ByFile: r.byFile} {
		for name, d := range definitions {
			windows, _ := d.rules() // checked when it was taken in
			counts := &limiter.Counts{}
			if known := before[name]; known != nil {
				counts = known.named.Counts
			}
			now[name] = &Limit{d, Source(source), limiter.NamedLimit{Windows: windows, Shadow: d.Shadow, Counts: counts}}
		}
	}
	r.current.Store(&now)
}

// logReloadLocked says what the file has changed.
func (r *Registry) logReloadLocked(byFile map[string]Definition) {
	var added, removed, changed int
	for name, d := range byFile {
		before, known := r.byFile[name]
		switch {
		case !known:
			added++
		case !before.Equal(&d):
			changed++
		}
	}
	for name := range r.byFile {
		if _, ok := byFile[name]; !ok {
			removed++
		}
	}
	r.config.Log.Info("limits read", "file", r.config.File.Path(), "limits", len(byFile), "added", added, "changed", changed, "removed", removed)
}
