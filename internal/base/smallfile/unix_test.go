//go:build unix

package smallfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestReadEndlessDevice(t *testing.T) {
	if _, err := Read("/dev/zero"); err == nil || err.Error() != "read /dev/zero: it is longer than 4 MiB" {
		t.Error(err)
	}
}

func TestReadPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	noEnd := "read " + path + ": the pipe was not written and closed within 10s"
	if _, err := read(path, MaxBytes, time.Millisecond); err == nil || err.Error() != noEnd {
		t.Errorf("nobody writes: %v", err)
	}
	written := make(chan error, 1)
	// Opening waits for the reader.
	go func() { written <- os.WriteFile(path, []byte("late"), 0o600) }()
	if got, err := read(path, MaxBytes, time.Hour); err != nil || string(got) != "late" {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	open, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	if _, err := open.WriteString("and no end"); err != nil {
		t.Fatal(err)
	}
	if _, err := read(path, MaxBytes, time.Millisecond); err == nil || err.Error() != noEnd {
		t.Errorf("the writer stays: %v", err)
	}
}
