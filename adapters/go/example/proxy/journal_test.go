package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	cellserver "cellserver/adapters/go"
)

func TestJournal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "holds")
	// The last line is torn, as by a kill.
	if err := os.WriteFile(file, []byte(`{"id":"a","model":"m"}`+"\n"+`{"id":"b"}`+"\n"+`{"id":"a","settled":true}`+"\n"+`{"id":"to`), 0o600); err != nil {
		t.Fatal(err)
	}
	j, open, err := openJournal(file)
	if err != nil || len(open) != 1 || open[0].ID != "b" {
		t.Fatalf("%+v, %v", open, err)
	}
	if runtime.GOOS != "windows" {
		if _, _, err := openJournal(file); err == nil || !strings.Contains(err.Error(), "another process") {
			t.Error(err)
		}
	}
	for _, e := range []entry{{ID: "c", Counted: true}, {ID: "d"}, {ID: "e"}} {
		if err := j.write(e); err != nil {
			t.Error(err)
		}
	}
	j.note("c", cellserver.Held)
	j.note("d", cellserver.Settled)
	j.note("of another", cellserver.Settled)
	full := j.file
	if j.file, err = os.Open(file); err != nil { // for reading: no write succeeds
		t.Fatal(err)
	}
	if err := j.write(entry{ID: "f"}); err == nil {
		t.Error("written")
	}
	j.note("f", cellserver.Settled)
	_, _ = j.file.Close(), full.Close()
	if _, open, err = openJournal(file); err != nil || len(open) != 3 {
		t.Fatalf("%+v, %v", open, err)
	}
	for _, e := range open {
		if e.Counted || e.ID == "d" || e.ID == "f" {
			t.Errorf("%+v", e)
		}
	}
}
