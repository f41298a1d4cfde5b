package replication

import (
	"fmt"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
)

// CheckRole reads a directory's role and returns the file's bytes. It returns fs.ErrNotExist without a file,
// persist.ErrDamaged, or the directory's error.
func CheckRole(dir disk.Dir) (size int64, err error) {
	text, err := disk.ReadAll(dir, RoleName, maxRoleBytes)
	if err != nil {
		return 0, err
	}
	if _, err := parseRole(text); err != nil {
		return int64(len(text)), fmt.Errorf("%w: %w", persist.ErrDamaged, err)
	}
	return int64(len(text)), nil
}
