package transfer

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cellserver/internal/base/smallfile"
)

func TestProgressIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	begin := progress{Source: "127.0.0.1:6379", Target: "127.0.0.1:6380", RunID: "a1", Match: "*", OnlyDB: -1}
	got, err := readProgress(path, begin)
	if err != nil || got.DB != -1 || got.Cursor != 0 {
		t.Fatalf("without a file: %+v, %v", got, err)
	}
	got.Done, got.DB, got.Cursor = []int{0, 3}, 7, 1<<64-1
	count(&got.Counts.Others, noExpiry)
	if err := got.write(path); err != nil {
		t.Fatal(err)
	}
	if again, err := readProgress(path, begin); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("%+v is read as %+v, %v", got, again, err)
	}
	restarted, other := begin, begin
	restarted.RunID, other.OnlyDB = "b2", 3
	for _, tt := range []struct {
		begin progress
		want  string
	}{
		{restarted, "127.0.0.1:6379 has restarted since; remove " + path + " to start over; what was imported stays"},
		{other, path + ` belongs to another import (of 127.0.0.1:6379 into 127.0.0.1:6380, --match "*", --db all); give its flags, or another file`},
	} {
		if _, err := readProgress(path, tt.begin); err == nil || err.Error() != tt.want {
			t.Errorf("%+v: %v", tt.begin, err)
		}
	}
	if err := os.WriteFile(path, make([]byte, smallfile.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readProgress(path, begin); err == nil || err.Error() != "read "+path+": it is longer than 4 MiB" {
		t.Error(err)
	}
	for _, text := range []string{"", "{}", `{"format":2}`, "nonsense"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readProgress(path, begin); err == nil || !strings.HasSuffix(err.Error(), "; remove it to start over") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := got.remove(path); err != nil {
		t.Error(err)
	}
	if err := got.remove(path); err != nil {
		t.Errorf("removed twice: %v", err)
	}
}

func FuzzProgress(f *testing.F) {
	f.Add([]byte(`{"format":1,"source":"127.0.0.1:6379","done":[0],"db":1,"cursor":5,"counts":{"others":{"a":1}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parseProgress(b); err == nil && p.Format != progressFormat {
			t.Errorf("%s is read as %+v", b, p)
		}
	})
}
