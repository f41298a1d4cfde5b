package replication

import (
	"errors"
	"io/fs"
	"testing"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/store/replicas"
)

// TestCutRoleIsNoOther: of each part of a role's file, none has the server follow another leader, or lead.
func TestCutRoleIsNoOther(t *testing.T) {
	dir := disktest.New()
	if _, err := CheckRole(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for _, want := range keptRoles() {
		text := string(want.text())
		for n := range text {
			dir.SetContents(RoleName, []byte(text[:n]))
			size, err := CheckRole(dir)
			got, parseErr := parseRole([]byte(text[:n]))
			switch {
			case (err == nil) != (parseErr == nil), size != int64(n):
				t.Errorf("%q: checked %v, %d bytes, and read %v", text[:n], err, size, parseErr)
			case parseErr == nil && (got.leader != want.leader || got.place.history != ""): // it may lack its place
				t.Errorf("%q is read as %+v", text[:n], got)
			case err != nil && !errors.Is(err, persist.ErrDamaged):
				t.Errorf("%q: %v", text[:n], err)
			}
		}
	}
	leader := keptRole{leader: replicas.Address{Host: "a", Port: 1}}
	dir.SetContents(RoleName, leader.text())
	if _, err := CheckRole(dir); err != nil {
		t.Error(err)
	}
}
