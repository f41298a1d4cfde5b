package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"
	"sync"

	cellserver "cellserver/adapters/go"
)

// entry is a line of the journal, and of a hold the latest one counts.
type entry struct {
	ID      string           `json:"id"`
	Model   string           `json:"model,omitempty"`
	Uses    []cellserver.Use `json:"uses,omitempty"`
	Counted bool             `json:"counted,omitempty"` // in this process, as cellserver was away
	Settled bool             `json:"settled,omitempty"`
}

// journal is a file of holds. It outlasts a kill of the process; for one of the machine, sync each line.
type journal struct {
	mu   sync.Mutex // guards the rest
	file *os.File
	open map[string]entry
	size int64
}

// openJournal returns the holds that an earlier process has left open, too.
func openJournal(name string) (*journal, []entry, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		err = lock(f)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the journal %s: %w", name, err)
	}
	j := &journal{file: f, open: map[string]entry{}}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil { // the last line may be a part of one
			j.keep(e)
		}
	}
	// Whatever follows begins a line.
	if _, err = f.WriteString("\n"); err == nil {
		j.size, err = f.Seek(0, io.SeekEnd)
	}
	return j, slices.Collect(maps.Values(j.open)), cmp.Or(lines.Err(), err)
}

func (j *journal) keep(e entry) {
	if e.Settled {
		delete(j.open, e.ID)
	} else {
		j.open[e.ID] = e
	}
}

func (j *journal) write(e entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writeLocked(e)
}

func (j *journal) writeLocked(e entry) error {
	const large = 1 << 20
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.keep(e)
	if len(j.open) == 0 && j.size > large {
		j.size = 0
		return j.file.Truncate(0)
	}
	if _, err = j.file.Write(append(line, '\n')); err != nil {
		return errors.Join(err, j.file.Truncate(j.size)) // a part of a line would spoil the next one
	}
	j.size += int64(len(line)) + 1
	return nil
}

// note writes what the limiter tells of holds.
func (j *journal) note(id string, s cellserver.Stage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.open[id]
	if !ok {
		return
	}
	e.Counted = false
	e.Settled = s == cellserver.Settled
	if err := j.writeLocked(e); err != nil {
		log.Print("the journal: ", err)
	}
}
