package envoyconfig

import (
	"errors"
	"io/fs"
	"testing"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
)

func TestKept(t *testing.T) {
	dir := disktest.New()
	k := NewKept(dir)
	if text, err := k.Load(); text != nil || err != nil {
		t.Errorf("without a file: %q, %v", text, err)
	}
	if err := k.Rewrite(); err != nil || dir.Contents(KeptName) != nil {
		t.Errorf("nothing is written again: %v, %q", err, dir.Contents(KeptName))
	}
	if _, err := CheckKept(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a check without a file: %v", err)
	}
	for _, text := range []string{"first\x00\n", "", "last"} {
		if err := k.Save([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := NewKept(dir.Kill()).Load(); string(got) != text || got == nil || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
	}
	if size, err := CheckKept(dir); int(size) != len(dir.Contents(KeptName)) || err != nil {
		t.Errorf("a check: %d, %v", size, err)
	}
	want := string(dir.Contents(KeptName))
	dir.SetContents(KeptName, nil)
	if err := k.Rewrite(); err != nil || string(dir.Contents(KeptName)) != want {
		t.Errorf("written again: %v, %q", err, dir.Contents(KeptName))
	}
	dir.SetContents(KeptName, disk.AppendSum([]byte("cellserver limits for Envoy, format 2\nx")))
	if _, err := CheckKept(dir); !errors.Is(err, persist.ErrNewer) {
		t.Errorf("a later format: %v", err)
	}
	dir.SetContents(KeptName, []byte(want[:len(want)-1]))
	if _, err := CheckKept(dir); !errors.Is(err, persist.ErrDamaged) {
		t.Errorf("a cut file: %v", err)
	}
}
