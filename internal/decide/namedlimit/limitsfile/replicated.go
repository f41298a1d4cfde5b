package limitsfile

import "cellserver/internal/decide/namedlimit"

// Replicated tells and follows a registry's changes as texts.
type Replicated struct{ Registry *namedlimit.Registry }

// Tell starts recording changes, the first of which is everything, or stops it.
func (r Replicated) Tell(on bool) { r.Registry.Tell(on) }

// TakeTold returns the changes since its last call. It waits for one that is being written only if told to.
func (r Replicated) TakeTold(wait bool) [][]byte {
	t, ok := r.Registry.TakeTold(wait)
	if !ok {
		return nil
	}
	return ToldTexts(t)
}

// Everything returns all that commands have defined.
func (r Replicated) Everything() [][]byte { return ToldTexts(r.Registry.Everything()) }

// Follow applies a text of another server.
func (r Replicated) Follow(text []byte) error {
	t, err := ReadTold(text)
	if err != nil {
		return err
	}
	return r.Registry.Follow(t)
}
