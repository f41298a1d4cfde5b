package envoyconfig

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// RulesOf returns the rules for a server.
func RulesOf(files []File) (*Rules, error) { return Options{}.rulesOf(files) }

func (o Options) rulesOf(files []File) (*Rules, error) {
	rules, err := Parse(files, o)
	if err != nil {
		return nil, err
	}
	rules.noteEmpty()
	rules.noteReplaces()
	return rules, nil
}

// Store holds the rules of a directory, which Reload and Watch replace.
type Store struct {
	dir    string
	how    Options
	rules  atomic.Pointer[Rules]
	failed atomic.Bool // the last load
	loads  struct{ done, failed atomic.Uint64 }

	mu   sync.Mutex // rank 15: guards seen, and serializes loading
	seen string     // the files of the last Reload
}

// Open loads the rules of a directory. The error has one line.
func Open(dir string, o Options) (*Store, error) {
	s := &Store{dir: dir, how: o}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) Rules() *Rules { return s.rules.Load() }

// LastFailed reports whether the last load failed, and earlier rules are in use.
func (s *Store) LastFailed() bool { return s.failed.Load() }

// Loads returns how often the directory was loaded.
func (s *Store) Loads() Loads { return Loads{s.loads.done.Load(), s.loads.failed.Load()} }

// Reload replaces the rules by those of the directory. After an error the previous ones stay.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = s.how.stateOf(s.dir) // first: files may change while they are read
	return s.loadLocked()
}

func (s *Store) loadLocked() error {
	rules, err := s.how.load(s.dir)
	s.failed.Store(err != nil)
	if err != nil {
		s.loads.failed.Add(1)
		return err
	}
	s.rules.Store(rules)
	s.loads.done.Add(1)
	return nil
}

// ReloadChanged is Reload if a file has changed since the last one.
func (s *Store) ReloadChanged() (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.how.stateOf(s.dir)
	if now == s.seen {
		return false, nil
	}
	s.seen = now
	return true, s.loadLocked()
}

// Watch reloads changed files until ctx is done.
func (s *Store) Watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch changed, err := s.ReloadChanged(); {
		case err != nil:
			log.Error("the changed files of limits for Envoy are not used; the previous rules stay", "error", err)
		case changed:
			s.LogRead(log)
		}
	}
}

const maxSkipped = 10 // names in the log

// LogRead logs what the current rules have, and warns of what looks like a mistake.
func (s *Store) LogRead(log *slog.Logger) {
	rules := s.Rules()
	log.Info("limits for Envoy read", "directory", s.dir, "files", rules.Files, "domains", len(rules.Domains), "rules", rules.Count())
	if n := len(rules.Skipped); n > 0 {
		log.Warn("--envoy-config reads *.yaml and *.yml, and no directories in it; it skips others", "count", n,
			"names", strings.Join(rules.Skipped[:min(n, maxSkipped)], " "))
	}
	for _, n := range rules.Notes {
		log.Warn("a line of the limits for Envoy may be a mistake", "line", n.String())
	}
}
