package limitsfile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
)

// Definitions by commands are kept in one file, replaced as a whole, as readable text:
//
//	cellserver limits, format 1
//	api 20 10 1 1000 500 3600
//	login 5 5 60 shadow
//	crc32c 1a2b3c4d
//
// A line has a limit's name, and for each window the capacity, the count and the period in seconds.
const (
	KeptName = "LIMITS"

	keptFormat   = 1
	maxKeptBytes = 4 << 20 // exceeds MaxNames limits of MaxWindows windows
)

// keptFile keeps LIMITS in a data directory.
type keptFile struct {
	dir    disk.Dir
	repair bool
	log    *slog.Logger
}

// Load reads the definitions.
func (f keptFile) Load() ([]namedlimit.Definition, error) {
	kept, err := readKept(f.dir)
	if errors.Is(err, persist.ErrDamaged) && f.repair {
		f.log.Warn("the limits in the data directory are damaged; setting the file aside, without the limits defined by commands", "error", err)
		kept, err = nil, disk.SetAside(f.dir, KeptName)
	}
	newer := (*persist.NewerError)(nil)
	switch {
	case errors.As(err, &newer):
		return nil, newer.Advise()
	case errors.Is(err, persist.ErrDamaged):
		return nil, fmt.Errorf("%w; restore %s from a backup, or start with --data-recover, which sets it aside and drops the limits of CL.LIMIT SET", err, KeptName)
	}
	return kept, err
}

func (f keptFile) Keep(definitions []namedlimit.Definition) error {
	return disk.Replace(f.dir, KeptName, keptText(definitions))
}

// Check returns an error if there is no readable file.
func (f keptFile) Check() error { return f.dir.Check(KeptName) }

// CheckKept reads a directory's definitions and returns their number and bytes. It returns fs.ErrNotExist
// without a file, persist.ErrDamaged, persist.ErrNewer, or the directory's error.
func CheckKept(dir disk.Dir) (n int, size int64, err error) {
	f, err := dir.Open(KeptName)
	if err != nil {
		return 0, 0, err
	}
	size = f.Size()
	_ = f.Close() // nothing was written
	kept, err := readKept(dir)
	return len(kept), size, err
}

// readKept returns nothing without a file.
func readKept(dir disk.Dir) ([]namedlimit.Definition, error) {
	text, err := disk.ReadAll(dir, KeptName, maxKeptBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseKept(text)
}

func keptText(definitions []namedlimit.Definition) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "cellserver limits, format %d\n", keptFormat)
	for i := range definitions {
		b.WriteString(definitions[i].Name)
		for _, w := range definitions[i].Windows {
			fmt.Fprintf(&b, " %d %d %d", w.Capacity, w.Count, w.PeriodSec)
		}
		if definitions[i].Shadow {
			b.WriteString(" shadow")
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "crc32c %08x\n", crc32.Checksum(b.Bytes(), crc32.MakeTable(crc32.Castagnoli)))
	return b.Bytes()
}

func parseKept(text []byte) (definitions []namedlimit.Definition, err error) {
	damaged := fmt.Errorf("%w: %s", persist.ErrDamaged, KeptName)
	var version int
	if n, _ := fmt.Sscanf(string(text), "cellserver limits, format %d\n", &version); n == 1 && version > keptFormat {
		return nil, &persist.NewerError{File: KeptName, Format: version, Newest: keptFormat}
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 3 { // the header, the checksum and the empty end
		return nil, damaged
	}
	seen := map[string]bool{}
	for _, line := range lines[1 : len(lines)-2] {
		d, ok := parseLimit(line)
		if !ok || d.Check() != nil || seen[d.Name] {
			return nil, damaged
		}
		seen[d.Name] = true
		definitions = append(definitions, d)
	}
	// Text that is written again unchanged has a right checksum and nothing unknown.
	if len(definitions) > namedlimit.MaxNames || !bytes.Equal(keptText(definitions), text) {
		return nil, damaged
	}
	return definitions, nil
}

func parseLimit(line string) (d namedlimit.Definition, ok bool) {
	words := strings.Split(line, " ")
	d.Name, words = words[0], words[1:]
	if n := len(words); n > 0 && words[n-1] == "shadow" {
		d.Shadow, words = true, words[:n-1]
	}
	if len(words)%3 != 0 {
		return d, false
	}
	for ; len(words) > 0; words = words[3:] {
		var numbers [3]int64
		for i := range numbers {
			n, err := strconv.ParseInt(words[i], 10, 64)
			if err != nil {
				return d, false
			}
			numbers[i] = n
		}
		d.Windows = append(d.Windows, namedlimit.Window{Capacity: numbers[0], Count: numbers[1], PeriodSec: numbers[2]})
	}
	return d, true
}
