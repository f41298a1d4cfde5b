package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"cellserver/internal/keep/persist/disk"
)

// errForeign reports a directory with files of another server or an operator, which are not overwritten.
var errForeign = errors.New("persist: the data directory has been replaced by one with other data, " +
	"which is left as it is")

func hintOn(err error) string {
	switch {
	case errors.Is(err, disk.ErrGone):
		return "put the directory back, or create it, empty and with the right owner: " +
			"the server writes all that it knows there, and does not create it itself"
	case errors.Is(err, disk.ErrInUse):
		return "end the other process; if that is a server, its clients have been told " +
			"what this one does not know: keep one of the two"
	case errors.Is(err, errForeign):
		return "move those files away, and the server writes all that it knows; " +
			"or end the server, and start it to use them"
	}
	return "the server tries again by itself; free space there, or mend the disk"
}

// look checks that the files for a start are there, and reports whether nothing is to be done.
func (r *keeping) look() (well bool) {
	if !r.sound {
		return true
	}
	err := r.config.Dir.Check(append(r.stands.names(), r.config.Beside...)...)
	if err != nil {
		r.fail(err)
	}
	return err == nil
}

// regain ensures that the directory is this server's. A directory in its place is taken if it is empty or has
// this server's files.
func (r *keeping) regain() error {
	isOther, err := r.config.Dir.Regain(r.mayReplace)
	if err != nil {
		return err
	}
	if isOther {
		r.stands, r.tried, r.damaged, r.lost = manifest{}, manifest{}, nil, true
	}
	if !r.lost || r.config.Rewrite == nil {
		return nil
	}
	if err := r.config.Rewrite(); err != nil {
		return err
	}
	r.lost = false
	return nil
}

// mayReplace refuses a directory with files of another server or an operator.
func (r *keeping) mayReplace(there disk.Dir, isOther bool) error {
	if isOther {
		names, err := there.List()
		for _, name := range names {
			if isOurs(name) && name != newManifestName || slices.Contains(r.config.Beside, name) {
				return fmt.Errorf("%w: %s", errForeign, name)
			}
		}
		return err
	}
	m, err := readManifest(there) // another server would have begun a log there
	if errors.Is(err, fs.ErrNotExist) || err == nil && (m.is(&r.stands) || m.is(&r.tried)) {
		return nil
	}
	return errForeign
}

// writeManifest writes a missing manifest: the last one if its files are there, an empty one without any
// files. Otherwise an operator must judge the files.
func (r *keeping) writeManifest() error {
	names, err := r.config.Dir.List()
	if err != nil {
		return err
	}
	others := func(name string) bool { return !isOurs(name) || name == newManifestName }
	left := slices.DeleteFunc(names, others)
	isLost := func(name string) bool { return !slices.Contains(left, name) }
	all := r.stands.names()[1:]
	switch {
	case len(r.stands.logs) == 0, len(left) == 0:
		return (&manifest{}).write(r.config.Dir)
	case !slices.ContainsFunc(all, isLost) && r.config.Dir.Check(all...) == nil:
		return r.stands.write(r.config.Dir)
	}
	return nil
}

// A recovery writes a new generation, has the manifest name it, and then sets the damaged files aside. From
// before the manifest's replacement until all are aside, recoveryName has what the manifest was: whenever it
// ends, there is a manifest, and a start goes on with setting files aside in place of removing them.
const recoveryName = "MANIFEST.damaged"

// beginRecovery copies the manifest, even an unreadable one. The copy is empty for a missing one.
func beginRecovery(dir disk.Dir) error {
	switch earlier, err := isThere(dir, recoveryName); {
	case err != nil:
		return err
	case earlier: // of a recovery whose files were damaged, too
		if err := endRecovery(dir); err != nil {
			return err
		}
	}
	text, err := disk.ReadAll(dir, manifestName, maxManifest)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = disk.SetAside(dir, manifestName) // it cannot be copied, and documents the other files
	}
	return disk.Replace(dir, recoveryName, text)
}

// endRecovery sets aside what the manifest was.
func endRecovery(dir disk.Dir) error {
	f, err := dir.Open(recoveryName)
	if err != nil {
		return err
	}
	size := f.Size()
	_ = f.Close() // nothing was written
	if size == 0 {
		return dir.Remove(recoveryName)
	}
	return disk.SetAsideAs(dir, recoveryName, manifestName)
}
