package limitsfile

import "cellserver/internal/decide/namedlimit"

// Replicated records and applies a registry's changes as texts.
type Replicated struct{ Registry *namedlimit.Registry }

// Record starts recording changes, the first of which is everything, or stops it.
func (r Replicated) Record(on bool) { r.Registry.Record(on) }

// TakeRecorded returns the changes since its last call. It skips one that is being written, unless wait is
// set.
func (r Replicated) TakeRecorded(wait bool) [][]byte {
	t, ok := r.Registry.TakeRecorded(wait)
	if !ok {
		return nil
	}
	return ChangeTexts(t)
}

// Everything returns all that commands have defined.
func (r Replicated) Everything() [][]byte { return ChangeTexts(r.Registry.Everything()) }

// Apply applies a text of another server.
func (r Replicated) Apply(text []byte) error {
	t, err := ReadChanges(text)
	if err != nil {
		return err
	}
	return r.Registry.Apply(t)
}
