package persist

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"cellserver/internal/keep/persist/disk"
)

// A manifest lists the valid files, as readable text:
//
//	cellserver data, format 7
//	snapshot 5 81234
//	log 5 1000 5000
//	log 6 1017
//	beside LIMITS
//	crc32c 1a2b3c4d
//
// A line has a file's number, a log's first sequence, and the length except of the last log, which is being
// written. A log begins no later than the snapshot of its number, so the state is the snapshot followed by
// the logs in order. Without a snapshot, the logs are complete. Files beside are those of others that must be
// there, too. The last line is disk.AppendSum's.
type manifest struct {
	snapshot fileEntry // number 0 for none
	logs     []fileEntry
	beside   []string // in order
}

func (m *manifest) clone() manifest {
	return manifest{m.snapshot, slices.Clone(m.logs), slices.Clone(m.beside)}
}

func (m *manifest) is(other *manifest) bool { return bytes.Equal(m.text(), other.text()) }

// dataFile is a snapshot or a log.
type dataFile struct {
	name, kind string
	*fileEntry
}

// files returns its files but those beside, in the order in which they are read.
func (m *manifest) files() (files []dataFile) {
	if m.snapshot.number != 0 {
		files = append(files, dataFile{snapshotName(m.snapshot.number), kindSnapshot, &m.snapshot})
	}
	for i := range m.logs {
		files = append(files, dataFile{logName(m.logs[i].number), kindLog, &m.logs[i]})
	}
	return files
}

// names returns the names of all its files but those beside.
func (m *manifest) names() []string {
	names := []string{manifestName}
	for _, f := range m.files() {
		names = append(names, f.name)
	}
	return names
}

type fileEntry struct {
	number   uint64
	sequence uint64 // of a log's first frame
	bytes    int64  // -1 for the current log
}

const (
	manifestName    = "MANIFEST"
	newManifestName = "MANIFEST.new"
	maxManifest     = 1 << 20
)

func logName(number uint64) string { return fmt.Sprintf("log-%08d", number) }

func snapshotName(number uint64) string { return fmt.Sprintf("snapshot-%08d", number) }

func nameOf(kind string, number uint64) string {
	if kind == kindSnapshot {
		return snapshotName(number)
	}
	return logName(number)
}

func (m *manifest) text() []byte { return m.textOf(format) }

func (m *manifest) textOf(format int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "cellserver data, format %d\n", format)
	if m.snapshot.number != 0 {
		fmt.Fprintf(&b, "snapshot %d %d\n", m.snapshot.number, m.snapshot.bytes)
	}
	for _, l := range m.logs {
		if l.bytes < 0 {
			fmt.Fprintf(&b, "log %d %d\n", l.number, l.sequence)
		} else {
			fmt.Fprintf(&b, "log %d %d %d\n", l.number, l.sequence, l.bytes)
		}
	}
	for _, name := range m.beside {
		fmt.Fprintf(&b, "beside %s\n", name)
	}
	return disk.AppendSum(b.Bytes())
}

func parseManifest(text []byte) (m manifest, err error) {
	damaged := fmt.Errorf("%w: %s", ErrDamaged, manifestName)
	version := 0
	if _, ok := disk.CutSum(text); !ok {
		return manifest{}, damaged
	}
	if _, err := fmt.Sscanf(string(text), "cellserver data, format %d\n", &version); err != nil || version < 1 {
		return manifest{}, damaged
	}
	if version > format {
		return manifest{}, &NewerError{manifestName, version, format}
	}
	for line := range strings.Lines(string(text)) {
		var f fileEntry
		switch {
		case strings.HasPrefix(line, "snapshot "):
			_, err = fmt.Sscanf(line, "snapshot %d %d\n", &f.number, &f.bytes)
			m.snapshot = f
		case strings.HasPrefix(line, "log "):
			if _, err = fmt.Sscanf(line, "log %d %d %d\n", &f.number, &f.sequence, &f.bytes); err != nil {
				f.bytes = -1
				_, err = fmt.Sscanf(line, "log %d %d\n", &f.number, &f.sequence)
			}
			m.logs = append(m.logs, f)
		case strings.HasPrefix(line, "beside "):
			m.beside = append(m.beside, strings.TrimSuffix(strings.TrimPrefix(line, "beside "), "\n"))
		}
		if err != nil {
			return manifest{}, damaged
		}
	}
	// Text that is written again unchanged has nothing unknown.
	if !bytes.Equal(m.textOf(version), text) {
		return manifest{}, damaged
	}
	return m, nil
}

func readManifest(dir disk.Dir) (manifest, error) {
	text, err := disk.ReadAll(dir, manifestName, maxManifest)
	if err != nil {
		return manifest{}, err
	}
	return parseManifest(text)
}

func (m *manifest) write(dir disk.Dir) error { return disk.Replace(dir, manifestName, m.text()) }

// namingTimeout bounds the wait of NameBeside, which a fault would prolong: then a new generation names all.
const namingTimeout = time.Second

// NameBeside has the manifest name the files of Config.Named that are there, so that a start without one of
// them is refused. While the directory is being loaded, it does not wait for that.
func (k *Keeper) NameBeside() {
	done, ended := make(chan struct{}), false
	k.locked(func() { k.naming, ended = append(k.naming, done), k.ended })
	k.wake()
	if ended || k.Loading() {
		return
	}
	select {
	case <-done:
	case <-time.After(namingTimeout):
	}
}

// withBeside adds to names those of Config.Named that are in the directory.
func (k *Keeper) withBeside(names []string) []string {
	there, err := k.config.Dir.List()
	if err != nil {
		return names // the next write shows the error
	}
	named := slices.Clone(names)
	for _, name := range k.config.Named {
		if slices.Contains(there, name) {
			named = append(named, name)
		}
	}
	slices.Sort(named)
	return slices.Compact(named)
}

// nameBeside writes the manifest anew if a file beside is new. Without a manifest, the next one has its name.
func (r *keeping) nameBeside() {
	var calls []chan struct{}
	if r.locked(func() { calls, r.naming = r.naming, nil }); len(calls) == 0 {
		return
	}
	defer func() {
		for _, done := range calls {
			close(done)
		}
	}()
	if !r.sound {
		return
	}
	named := r.withBeside(r.log.manifest.beside)
	if slices.Equal(named, r.log.manifest.beside) {
		return
	}
	r.log.manifest.beside = named
	err := r.log.manifest.write(r.config.Dir)
	r.tried = r.log.manifest.clone()
	if err != nil {
		r.fail(err)
		return
	}
	r.standing()
}

// missingBeside returns the files that a directory's manifest names beside, and that are not there. An
// unreadable manifest names none.
func missingBeside(dir disk.Dir) (missing []string, err error) {
	m, err := readManifest(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrNewer) {
		return nil, nil
	}
	if err != nil || len(m.beside) == 0 {
		return nil, err
	}
	there, err := dir.List()
	for _, name := range m.beside {
		if err == nil && !slices.Contains(there, name) {
			missing = append(missing, name)
		}
	}
	return missing, err
}

func errMissing(name string) error {
	return fmt.Errorf("%w: %s is missing, and %s names it", ErrDamaged, name, manifestName)
}
