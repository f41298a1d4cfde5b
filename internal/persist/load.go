package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"cellserver/internal/persist/disk"
	"cellserver/internal/store"
)

// loaded is what a directory says, and where its log goes on.
type loaded struct {
	manifest manifest
	next     frame // of a new log: its number, its first sequence, and the latest time that was seen
}

// load calls visit with all that a directory knows, in an order in which it can be done. An empty one knows nothing.
func load(dir disk.Dir, visit func(c store.Change)) (l loaded, err error) {
	l.next = frame{generation: 1, sequence: 1}
	l.manifest, err = readManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return l, isEmpty(dir)
	}
	if err != nil {
		return l, err
	}
	if s := l.manifest.snapshot; s.number != 0 {
		if err := l.read(dir, snapshotName(s.number), kindSnapshot, &s, visit); err != nil {
			return l, err
		}
	}
	for i := range l.manifest.logs {
		f := &l.manifest.logs[i]
		if i > 0 && f.sequence != l.next.sequence {
			return l, fmt.Errorf("%w: %s ends before %s begins", ErrDamaged, logName(f.number-1), logName(f.number))
		}
		if err := l.read(dir, logName(f.number), kindLog, f, visit); err != nil {
			return l, err
		}
	}
	return l, nil
}

// read reads a file, and notes how long it is.
func (l *loaded) read(dir disk.Dir, name, kind string, f *fileEntry, visit func(c store.Change)) error {
	file, err := dir.Open(name)
	if err != nil {
		return err
	}
	valid, next, err := readFile(file, kind, frame{generation: f.number, sequence: f.sequence}, func(_ frame, payload []byte) error {
		return readRecords(payload, visit)
	})
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if f.bytes >= 0 && valid != f.bytes {
		return fmt.Errorf("%w: %s has %d bytes, and should have %d", ErrDamaged, name, valid, f.bytes)
	}
	f.bytes = valid
	l.next = frame{f.number + 1, next.sequence, max(l.next.clockNs, next.clockNs)}
	return nil
}

func readRecords(payload []byte, visit func(c store.Change)) error {
	for len(payload) > 0 {
		r, rest, err := readRecord(payload)
		if err != nil {
			return err
		}
		visit(store.Change{Key: r.key, TATNs: r.tatNs, Flushed: r.kind == recordFlushed})
		payload = rest
	}
	return nil
}

// isEmpty returns an error if there are files that only a manifest could tell the order of. The first log alone is what a
// crash leaves before there is a manifest.
func isEmpty(dir disk.Dir) error {
	names, err := dir.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if isOurs(name) && name != newManifestName && name != logName(1) {
			return fmt.Errorf("%w: there is %s, and no %s", ErrDamaged, name, manifestName)
		}
	}
	return nil
}

func isOurs(name string) bool {
	return strings.HasPrefix(name, "log-") || strings.HasPrefix(name, "snapshot-") || strings.HasPrefix(name, manifestName)
}
