package limitsfile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/keep/persist/disk"
)

// spareLines bounds the lines of OVERRIDES, with two for each override in force.
const spareLines = 1000

// overridesFile is OVERRIDES as far as the keeper knows it. A disk.Dir appends only to files that it has
// created, and after a failed write a file's end is unknown: then the next change writes all overrides to a
// new file.
type overridesFile struct {
	file  disk.File // being written; nil for a new one
	lines int       // of file
	known bool      // the directory has the file
	size  int64     // of it
}

// KeepOverride appends a change. all has the n overrides in force with it.
func (k *keeper) KeepOverride(changed namedlimit.KeyOverride, n int, all iter.Seq[namedlimit.KeyOverride]) error {
	l := &k.overrides
	if l.file == nil || l.lines >= 2*n+spareLines || k.checkOverrides() != nil {
		return k.rewriteOverrides(all)
	}
	line := appendOverride(nil, &changed)
	_, err := l.file.Write(line)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.drop()
		return err
	}
	l.lines++
	l.size += int64(len(line))
	return nil
}

// drop forgets the file being written.
func (l *overridesFile) drop() {
	if l.file != nil {
		_ = l.file.Close() // it is synced, or unsure
	}
	l.file, l.known = nil, false
}

// rewriteOverrides replaces the file by one with these overrides. After any failure, either the old or the
// new one is there.
func (k *keeper) rewriteOverrides(all iter.Seq[namedlimit.KeyOverride]) error {
	k.overrides.drop()
	const next = OverridesName + ".new"
	if err := k.dir.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := k.dir.Create(next)
	if err != nil {
		return err
	}
	lines, size, err := writeOverrides(f, all)
	if err == nil {
		err = k.dir.Rename(next, OverridesName)
	}
	if err == nil {
		err = k.dir.SyncDir()
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	k.overrides = overridesFile{f, lines, true, size}
	k.keptOverrides()
	return nil
}

func writeOverrides(f disk.File, all iter.Seq[namedlimit.KeyOverride]) (lines int, size int64, err error) {
	w := bufio.NewWriterSize(f, 1<<16)
	n, err := w.WriteString(overridesHead())
	lines, size = 1, int64(n)
	var line []byte
	for o := range all {
		if err != nil {
			break
		}
		line = appendOverride(line[:0], &o)
		n, err = w.Write(line)
		lines, size = lines+1, size+int64(n)
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return lines, size, err
}

// checkOverrides returns disk.ErrGone if the directory is gone, or the file was removed or replaced. The
// directory itself takes a renamed file for complete, and a longer one for another.
func (k *keeper) checkOverrides() error {
	if err := k.dir.Check(); err != nil || !k.overrides.known {
		return err
	}
	f, err := k.dir.Open(OverridesName)
	if err != nil {
		return fmt.Errorf("%w: %w", disk.ErrGone, err)
	}
	size := f.Size()
	_ = f.Close() // nothing was written
	if size != k.overrides.size {
		return fmt.Errorf("%w: %s has %d bytes, not %d", disk.ErrGone, OverridesName, size, k.overrides.size)
	}
	return nil
}
