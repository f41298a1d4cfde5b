package settings

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"cellserver/internal/base/smallfile"
)

// ReadSecret reads the file that a flag names, without a final newline; "" if the flag is unset.
func ReadSecret(flag, path, what string, log *slog.Logger) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := smallfile.Read(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s %s: %w", flag, path, smallfile.Cause(err))
	}
	if line, cut := bytes.CutSuffix(b, []byte("\n")); cut {
		b = bytes.TrimSuffix(line, []byte("\r"))
	}
	if len(b) == 0 {
		return "", fmt.Errorf("%s %s is empty; write %s into it", flag, path, what)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 && runtime.GOOS != "windows" {
		log.Warn("every user of this machine can read this secret; revoke that with chmod o-r", strings.TrimPrefix(flag, "--"), path)
	}
	return string(b), nil
}

// ReadPassword reads --requirepass-file, if set.
func (o *Options) ReadPassword(log *slog.Logger) error {
	if o.requirePassFile == "" {
		return nil
	}
	password, err := ReadSecret("--requirepass-file", o.requirePassFile, "the password", log)
	o.RequirePass = password
	return err
}
