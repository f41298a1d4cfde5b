package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store"
)

var ErrNotEmpty = errors.New("persist: the directory has data already")

// ReadDir loads a directory's live keys into a store, and returns the latest Unix time in nanoseconds of its
// server, or 0. It changes nothing in the directory and fails once ctx is done.
func ReadDir(ctx context.Context, dir disk.Dir, into store.Tracker, nowNs int64) (clockNs int64, err error) {
	r := newRestorer(into, nowNs)
	l := loader{dir: dir, visit: r.addUntil(ctx)}
	err = errors.Join(l.load(), r.end())
	return l.next.clockNs, err
}

// CreateDir creates a snapshot of the states that each visits, in a directory without data. If each fails,
// nothing is left.
func CreateDir(dir disk.Dir, clockNs int64, each func(visit func(c store.Change)) error) error {
	if err := checkNow(clockNs); err != nil {
		return err
	}
	const number = 1
	names, err := dir.List()
	if err != nil {
		return err
	}
	for _, name := range names { // remains of a crash are no data
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

// FileReport is Check's finding about a file.
type FileReport struct {
	Name            string
	Bytes           int64
	Frames, Records int64
	Tail            Tail  // what the server drops
	Err             error // with the position
}

// Report is Check's finding about a directory.
type Report struct {
	Files  []FileReport // of the manifest, in order
	Others []string     // unused ones outside the manifest
	// Recovering says that a recovery has ended before all damaged files were set aside: the next start goes
	// on with Others.
	Recovering bool
	ClockNs    int64 // latest time of the server
	Err        error // of the manifest
}

func (r *Report) Damaged() bool {
	return r.Err != nil || slices.ContainsFunc(r.Files, func(f FileReport) bool { return f.Err != nil })
}

// Check reads all files of a directory, also after a damaged one, and loads them into a store like ReadDir.
// It changes nothing. The error is the directory's or ctx's.
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
	restorer := newRestorer(into, nowNs)
	files := m.files()
	for i, f := range files {
		report, next := checkFile(dir, f, restorer.addUntil(ctx))
		if report.Err == nil && f.kind == kindLog && i+1 < len(files) && files[i+1].sequence != next.sequence {
			report.Err = fmt.Errorf("%w: it ends before %s begins", ErrDamaged, files[i+1].name)
		}
		r.ClockNs, r.Files = max(r.ClockNs, next.clockNs), append(r.Files, report)
	}
	missing, err := missingBeside(dir)
	for _, name := range missing {
		r.Files = append(r.Files, FileReport{Name: name, Err: errMissing(name)})
	}
	r.Recovering = slices.Contains(names, recoveryName)
	for _, name := range names { // an unreadable manifest may name them
		if r.Err == nil && isOurs(name) && !slices.Contains(m.names(), name) {
			r.Others = append(r.Others, name)
		}
	}
	return r, cmp.Or(restorer.end(), ctx.Err(), err)
}

// Newer returns the first later version's file, or nil.
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

func checkFile(dir disk.Dir, f dataFile, sound func(payload []byte) error) (report FileReport, next frame) {
	report.Name = f.name
	file, err := dir.Open(f.name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: it is missing", ErrDamaged)
		}
		report.Err = err
		return report, next
	}
	report.Bytes = file.Size()
	valid, next, err := readFile(file, f.kind, frame{generation: f.number, sequence: f.sequence}, func(_ frame, payload []byte) error {
		report.Frames++
		if err := changes.Read(payload, func(store.Change) { report.Records++ }); err != nil {
			return err
		}
		return sound(payload)
	})
	if err == nil && f.bytes < 0 {
		report.Tail, err = tailOf(f.name, file, valid, next)
	}
	switch err := errors.Join(err, file.Close()); {
	case errors.Is(err, changes.ErrFormat):
		report.Err = fmt.Errorf("%w: byte %d: %w", ErrDamaged, valid, err)
	case err != nil:
		report.Err = err
	case f.bytes >= 0 && valid != f.bytes:
		report.Err = fmt.Errorf("%w: byte %d: the frames end here, and should at byte %d", ErrDamaged, valid, f.bytes)
	}
	return report, next
}
