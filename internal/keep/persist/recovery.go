package persist

import (
	"errors"
	"io/fs"

	"cellserver/internal/keep/persist/disk"
)

// A recovery writes a new generation, has the manifest name it, and then sets the damaged files aside. From
// before the manifest's replacement until all are aside, recoveryName has what the manifest was: whenever it
// ends, there is a manifest, and a start goes on with setting files aside in place of removing them.
const recoveryName = "MANIFEST.damaged"

// beginRecovery copies the manifest, of which nothing may be readable. It is empty for a missing one.
func beginRecovery(dir disk.Dir) error {
	switch earlier, err := isThere(dir, recoveryName); {
	case err != nil:
		return err
	case earlier: // of a recovery of which the files were damaged, too
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
