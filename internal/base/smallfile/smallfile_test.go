package smallfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) ||
		Cause(err).Error() != "no such file or directory" {
		t.Error(err)
	}
	want := bytes.Repeat([]byte("x"), MaxBytes)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := os.WriteFile(path, append(want, 'x'), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || err.Error() != "read "+path+": it is longer than 4 MiB" {
		t.Error(err)
	}
	if got, err := ReadUpTo(path, 2*MaxBytes); err != nil || len(got) != MaxBytes+1 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := ReadUpTo(path, 1<<20); err == nil || err.Error() != "read "+path+": it is longer than 1 MiB" {
		t.Error(err)
	}
	if _, err := Read(dir); err == nil || Cause(err).Error() != "is a directory" {
		t.Error(err)
	}
	if got, err := Read(os.DevNull); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
}
