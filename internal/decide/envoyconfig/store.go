package envoyconfig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/yamlfile"
)

// RulesOf returns the rules for a server.
func RulesOf(files []File) (*Rules, error) {
	rules, err := Parse(files, Options{})
	if err != nil {
		return nil, err
	}
	rules.noteEmpty()
	rules.noteReplaces()
	return rules, nil
}

// Load returns the rules of a directory's *.yaml and *.yml. The error has one line.
func Load(dir string) (*Rules, error) {
	paths, skipped, err := pathsOf(dir)
	if err != nil {
		return nil, err
	}
	files := make([]File, len(paths))
	for i, path := range paths {
		text, err := yamlfile.Read(path)
		if err != nil {
			return nil, err
		}
		files[i] = File{path, text}
	}
	rules, err := RulesOf(files)
	if err != nil {
		return nil, err
	}
	rules.Files, rules.Skipped = len(paths), skipped
	return rules, nil
}

// pathsOf returns the files to read, and the names of others, but for hidden ones, as a ConfigMap has.
func pathsOf(dir string) (paths, skipped []string, err error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, nil, errors.New(dir + " is a file; give its directory, or, if it has limits:, give it to --limits-file")
	}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the directory: %w", err)
	}
	for _, e := range entries {
		switch extension := filepath.Ext(e.Name()); {
		case strings.HasPrefix(e.Name(), "."):
		case extension == ".yaml", extension == ".yml":
			paths = append(paths, filepath.Join(dir, e.Name()))
		default:
			skipped = append(skipped, e.Name())
		}
	}
	if len(paths) == 0 {
		return nil, nil, errors.New(dir + " has no *.yaml")
	}
	return paths, skipped, nil
}

// Store holds the rules of a directory, which Reload and Watch replace.
type Store struct {
	dir    string
	rules  atomic.Pointer[Rules]
	failed atomic.Bool // the last load

	mu   sync.Mutex // rank 15: guards seen, and serializes loading
	seen string     // the files of the last Reload
}

func Open(dir string) (*Store, error) {
	s := &Store{dir: dir}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) Rules() *Rules { return s.rules.Load() }

// LastFailed reports whether the last load failed, and earlier rules are in use.
func (s *Store) LastFailed() bool { return s.failed.Load() }

// Reload replaces the rules by those of the directory. After an error the previous ones stay.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = stateOf(s.dir) // first: files may change while they are read
	return s.loadLocked()
}

func (s *Store) loadLocked() error {
	rules, err := Load(s.dir)
	s.failed.Store(err != nil)
	if err != nil {
		return err
	}
	s.rules.Store(rules)
	return nil
}

// ReloadChanged is Reload if a file has changed since the last one.
func (s *Store) ReloadChanged() (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := stateOf(s.dir)
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
			log.Error("the changed files of --envoy-config are not used; the previous rules stay", "error", err)
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
		log.Warn("a line of --envoy-config may be a mistake", "line", n.String())
	}
}

// stateOf returns the names, sizes and times of a directory's files. It follows links, as those of a
// ConfigMap change where they lead.
func stateOf(dir string) string {
	paths, _, err := pathsOf(dir)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&b, "%q %v\n", path, err)
			continue
		}
		fmt.Fprintf(&b, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
}
