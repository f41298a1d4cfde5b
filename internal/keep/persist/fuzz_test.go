package persist

import (
	"errors"
	"testing"

	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/store"
)

// FuzzDir: any files are loaded or refused, also with Repair; what is loaded can be continued.
func FuzzDir(f *testing.F) {
	dir := disktest.New()
	w, err := createFile(dir, logName(1), kindLog, 1, 1)
	if err != nil {
		f.Fatal(err)
	}
	payload := someRecords()
	if err := errors.Join(w.write(1, payload), w.write(2, nil), w.write(3, payload)); err != nil {
		f.Fatal(err)
	}
	log := dir.Contents(logName(1))
	f.Add((&manifest{logs: []fileEntry{{1, 1, -1}}}).text(), log, []byte{})
	f.Add((&manifest{snapshot: fileEntry{number: 1, bytes: fileHeaderBytes}, logs: []fileEntry{{1, 1, -1}}}).text(), log, fileHeader(kindSnapshot, 1))
	f.Fuzz(func(t *testing.T, manifestText, log, snapshot []byte) {
		dir := disktest.New()
		for name, b := range map[string][]byte{manifestName: manifestText, logName(1): log, snapshotName(1): snapshot} {
			if len(b) > 0 {
				dir.SetContents(name, b)
			}
		}
		repaired := loader{dir: dir, repair: true, visit: func(payload []byte) error { return changes.Read(payload, func(store.Change) {}) }}
		if err := repaired.load(); err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) && !errors.Is(err, changes.ErrFormat) {
			t.Fatalf("with Repair: %v", err)
		}
		s, l, err := loadStates(dir)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) && !errors.Is(err, changes.ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if len(l.manifest.logs) == 0 {
			return
		}
		g, err := begin(dir, l)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.w.sync(); err != nil {
			t.Fatal(err)
		}
		again, next, err := loadStates(dir)
		if err != nil || len(again) != len(s) || next.next.generation != l.next.generation+1 || next.next.sequence != l.next.sequence {
			t.Fatalf("%d keys and %+v were loaded, then %d and %+v, %v", len(s), l, len(again), next, err)
		}
	})
}
