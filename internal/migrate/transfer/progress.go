package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"

	"cellserver/internal/base/smallfile"
)

// progress is the state file of an import that has not finished.
type progress struct {
	Format int    `json:"format"`
	Source string `json:"source"`
	Target string `json:"target"`
	RunID  string `json:"run_id"` // of the source; a restart invalidates its cursors
	Match  string `json:"match"`
	OnlyDB int    `json:"only_db"` // -1 for all
	Done   []int  `json:"done"`    // databases
	DB     int    `json:"db"`
	Cursor uint64 `json:"cursor"`
	Counts Counts `json:"counts"`
}

const progressFormat = 1

// readProgress reads the state file of the same import, or returns begin if there is none.
func readProgress(path string, begin progress) (progress, error) {
	begin.Format, begin.DB = progressFormat, -1
	if path == "" {
		return begin, nil
	}
	b, err := smallfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return begin, nil
	}
	if err != nil {
		return progress{}, err
	}
	p, err := parseProgress(b)
	switch {
	case err != nil:
		return progress{}, fmt.Errorf("%s: %w; remove it to start over", path, err)
	case p.Source != begin.Source || p.Target != begin.Target || p.Match != begin.Match || p.OnlyDB != begin.OnlyDB:
		return progress{}, fmt.Errorf("%s belongs to another import (of %s into %s, --match %q, --db %d); give its flags, or another file", path, p.Source, p.Target, p.Match, p.OnlyDB)
	case p.RunID != begin.RunID:
		return progress{}, fmt.Errorf("%s has restarted since; remove %s to start over; what was imported stays", p.Source, path)
	}
	return p, nil
}

func parseProgress(b []byte) (p progress, err error) {
	if err := json.Unmarshal(b, &p); err != nil {
		return progress{}, fmt.Errorf("not the state of an import: %w", err)
	}
	if p.Format != progressFormat {
		return progress{}, fmt.Errorf("format %d, want %d", p.Format, progressFormat)
	}
	return p, nil
}

// write replaces the state file atomically.
func (p *progress) write(path string) error {
	if path == "" {
		return nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func (p *progress) remove(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (c Counts) clone() Counts {
	c.Others, c.Refused = maps.Clone(c.Others), maps.Clone(c.Refused)
	return c
}
