// Package buildinfo describes the running cellserver.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// Version is the released version of this source. docs/check compares all other places with it.
const Version = "0.3.0"

type Info struct {
	Version  string    `json:"version"`
	Revision string    `json:"revision,omitempty"` // the commit, if known
	Time     time.Time `json:"time,omitzero"`      // of the commit
	Modified bool      `json:"modified,omitempty"` // since that commit
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
}

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

// String returns one line: version, Go's version and platform.
func (i Info) String() string {
	return fmt.Sprintf("cellserver %s (%s %s)", i.Version, i.Go, i.Platform)
}
