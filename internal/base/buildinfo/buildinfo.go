// Package buildinfo says which cellserver this is, from what the Go toolchain has written into the binary.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// Version is the released version that this source belongs to.
const Version = "0.2.0"

// Info describes the running binary.
type Info struct {
	Version  string    `json:"version"`
	Revision string    `json:"revision,omitempty"` // the commit, if the build knew it
	Time     time.Time `json:"time,omitzero"`      // the commit's
	Modified bool      `json:"modified,omitempty"` // since that commit
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
}

// Read returns what the binary says of itself.
func Read() Info {
	info := Info{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Revision = setting.Value
		case "vcs.time":
			info.Time, _ = time.Parse(time.RFC3339, setting.Value)
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info
}

// String is one line: the version, Go's, and the platform.
func (i Info) String() string {
	return fmt.Sprintf("cellserver %s (%s %s)", i.Version, i.Go, i.Platform)
}
