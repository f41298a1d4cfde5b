// Package zones loads time zones: the system's files, which follow the laws as it is updated, else those
// embedded. It is safe for concurrent use.
package zones

import (
	"os"
	"path/filepath"
	"strings"
	"time"
	_ "time/tzdata" // the embedded zones, about 450 KB

	"cellserver/internal/base/smallfile"
)

// embeddedVersion is the version of Go's time/tzdata, which has none to read.
const embeddedVersion = "2025c"

const unknown = "unknown"

// Load returns the zone of an IANA name. The package time looks for each zone in all its places, so that one
// that the system lacks is an embedded one.
func Load(name string) (*time.Location, error) { return time.LoadLocation(name) }

// Source is the origin of zones.
type Source struct {
	Embedded bool
	Version  string // such as 2025b, or unknown
}

// Used returns the first source in which Load looks that has zones.
func Used() Source { return firstOf(directories(os.Getenv("ZONEINFO"))) }

// directories returns the places in the order of the package time; named is $ZONEINFO.
func directories(named string) []string {
	system := []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}
	if named == "" {
		return system
	}
	return append([]string{named}, system...)
}

func firstOf(directories []string) Source {
	for _, d := range directories {
		if strings.HasSuffix(d, ".zip") { // Go reads it as a directory
			if isFile(d) {
				return Source{Version: unknown}
			}
		} else if isFile(filepath.Join(d, "Europe", "Berlin")) {
			return Source{Version: version(d)}
		}
	}
	return Source{Embedded: true, Version: embeddedVersion}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// version returns the version of a directory, from tzdata.zi's first line, or +VERSION of BSD and macOS.
func version(directory string) string {
	if line, found := strings.CutPrefix(firstLine(filepath.Join(directory, "tzdata.zi")), "# version "); found {
		return word(line)
	}
	return word(firstLine(filepath.Join(directory, "+VERSION")))
}

// word returns a text if it is one printable word, else unknown.
func word(text string) string {
	odd := strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
	if text == "" || odd {
		return unknown
	}
	return text
}

// firstLine returns the first line of a file, "" without one.
func firstLine(path string) string {
	if !isFile(path) { // opening a pipe would wait
		return ""
	}
	text, err := smallfile.Read(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}
