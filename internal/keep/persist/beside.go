package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"cellserver/internal/keep/persist/disk"
)

// namingTimeout bounds the wait of NameBeside, which a fault would prolong: then a new generation names all.
const namingTimeout = time.Second

// NameBeside has the manifest name the files of Config.Named that are there, so that a start without one of
// them is refused. While the directory is being loaded, it does not wait for that.
func (k *Keeper) NameBeside() {
	done := make(chan struct{})
	k.mu.Lock()
	k.naming = append(k.naming, done)
	ended := k.ended
	k.mu.Unlock()
	k.wake()
	if ended || k.Loading() {
		return
	}
	late := time.NewTimer(namingTimeout)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// takeNaming returns the calls of NameBeside.
func (k *Keeper) takeNaming() (calls []chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	calls, k.naming = k.naming, nil
	return calls
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
	calls := r.takeNaming()
	if len(calls) == 0 {
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
