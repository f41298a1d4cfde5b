package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store"
)

// ErrNotEmpty is that a directory has data already.
var ErrNotEmpty = errors.New("persist: the directory has data already")

// ReadDir loads a directory into a store, but for what has expired, and returns the latest time in Unix
// nanoseconds that its server had seen, 0 if there was none. It changes nothing in the directory, and fails
// as soon as ctx is done.
func ReadDir(ctx context.Context, dir disk.Dir, into store.Tracker, nowNs int64) (clockNs int64, err error) {
	r := newRestorer(into, nowNs)
	l := loader{dir: dir, visit: r.addUntil(ctx)}
	err = errors.Join(l.load(), r.end())
	return l.next.clockNs, err
}

// CreateDir makes a snapshot of what each tells, of which nothing may be gone, in a directory without data. If each fails
// there is none afterwards.
func CreateDir(dir disk.Dir, clockNs int64, each func(visit func(c store.Change)) error) error {
	if err := checkNow(clockNs); err != nil {
		return err
	}
	const number = 1
	names, err := dir.List()
	if err != nil {
		return err
	}
	for _, name := range names { // what a crash leaves of a snapshot or of a server's start is no data
		if isOurs(name) && !slices.Contains([]string{newManifestName, snapshotName(number), logName(number)}, name) {
			return fmt.Errorf("%w: %s", ErrNotEmpty, name)
		}
	}
	var failed error
	bytes, err := writeSnapshot(context.Background(), dir, number, clockNs, nil,
		func(_ context.Context, visit func(c store.Change)) { failed = each(visit) })
	if err := errors.Join(failed, err); err != nil {
		return errors.Join(err, removeIfThere(dir, snapshotName(number)))
	}
	m := manifest{snapshot: fileEntry{number: number, bytes: bytes}}
	return m.write(dir)
}

// FileReport is what Check has found in a file.
type FileReport struct {
	Name            string
	Bytes           int64
	Frames, Records int64
	TornBytes       int64 // behind the last frame, of a write that was under way when the server ended
	Err             error // what is wrong, and at which byte
}

// Report is what Check has found in a directory.
type Report struct {
	Files   []FileReport // those of the manifest, in their order
	Others  []string     // which the manifest does not name, and nobody reads
	ClockNs int64        // the latest time that the server had seen
	Err     error        // of the manifest
}

// Damaged reports whether anything cannot be read.
func (r *Report) Damaged() bool {
	return r.Err != nil || slices.ContainsFunc(r.Files, func(f FileReport) bool { return f.Err != nil })
}

// Check reads all files of a directory, also behind one that is damaged, and loads them into a store as ReadDir. It changes
// nothing in the directory. The error is that of the directory itself, or ctx's.
func Check(ctx context.Context, dir disk.Dir, into store.Tracker, nowNs int64) (r Report, err error) {
	names, err := dir.List()
	if err != nil {
		return Report{}, err
	}
	m, err := readManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = isEmpty(dir)
	}
	r.Err = err
	named := []string{manifestName}
	restorer := newRestorer(into, nowNs)
	check := func(name, kind string, f fileEntry) (next frame) {
		report, next := checkFile(dir, name, kind, f, restorer.addUntil(ctx))
		r.ClockNs = max(r.ClockNs, next.clockNs)
		r.Files, named = append(r.Files, report), append(named, name)
		return next
	}
	if m.snapshot.number != 0 {
		check(snapshotName(m.snapshot.number), kindSnapshot, m.snapshot)
	}
	for i, f := range m.logs {
		next := check(logName(f.number), kindLog, f)
		if last := &r.Files[len(r.Files)-1]; last.Err == nil && i+1 < len(m.logs) && m.logs[i+1].sequence != next.sequence {
			last.Err = fmt.Errorf("%w: it ends before %s begins", ErrDamaged, logName(m.logs[i+1].number))
		}
	}
	for _, name := range names { // a manifest that cannot be read may name them
		if r.Err == nil && isOurs(name) && !slices.Contains(named, name) {
			r.Others = append(r.Others, name)
		}
	}
	return r, cmp.Or(restorer.end(), ctx.Err())
}

// Newer returns what was written by a later version; nil if nothing was.
func (r *Report) Newer() (newer *NewerError) {
	if errors.As(r.Err, &newer) {
		return newer
	}
	for _, f := range r.Files {
		if errors.As(f.Err, &newer) {
			return newer
		}
	}
	return nil
}

func checkFile(dir disk.Dir, name, kind string, f fileEntry, sound func(payload []byte) error) (report FileReport, next frame) {
	report.Name = name
	file, err := dir.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: it is missing", ErrDamaged)
		}
		report.Err = err
		return report, next
	}
	report.Bytes = file.Size()
	valid, next, err := readFile(file, kind, frame{generation: f.number, sequence: f.sequence}, func(_ frame, payload []byte) error {
		report.Frames++
		if err := readRecords(payload, func(store.Change) { report.Records++ }); err != nil {
			return err
		}
		return sound(payload)
	})
	switch err := errors.Join(err, file.Close()); {
	case errors.Is(err, errRecord):
		report.Err = fmt.Errorf("%w: byte %d: %w", ErrDamaged, valid, err)
	case err != nil:
		report.Err = err
	case f.bytes >= 0 && valid != f.bytes:
		report.Err = fmt.Errorf("%w: byte %d: the frames end here, and should at byte %d", ErrDamaged, valid, f.bytes)
	case f.bytes < 0:
		report.TornBytes = report.Bytes - valid
	}
	return report, next
}
