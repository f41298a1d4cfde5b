package picture

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

const pictures = "../../../docs/limiters"

// TestPicturesAreOfToday: the pictures of docs/LIMITERS.md match the current arithmetic.
func TestPicturesAreOfToday(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	names := func(dir string) (all []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	drawn, kept := names(dir), names(pictures)
	if len(drawn) != len(kept) {
		t.Errorf("drawn are %q, and there are %q: make pictures", drawn, kept)
	}
	for _, name := range drawn {
		now, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if before, err := os.ReadFile(filepath.Join(pictures, name)); err != nil || !bytes.Equal(now, before) {
			t.Errorf("%s is not what is drawn now: make pictures (%v)", name, err)
		}
	}
}
