package limits

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
)

// What commands have defined is kept in one file, which is replaced as a whole. It is text, so that an operator can read it:
//
//	cellserver limits, format 1
//	api 20 10 1 1000 500 3600
//	login 5 5 60 shadow
//	crc32c 1a2b3c4d
//
// A line of a limit has its name, and of each window the capacity, the count and the period in seconds.
const (
	// KeptName is the file's name.
	KeptName = "LIMITS"

	keptFormat   = 1
	maxKeptBytes = 4 << 20 // more than MaxNames limits of MaxWindows windows
)

// Load takes in what commands have defined before the last end of the server.
func (r *Registry) Load() error {
	if r.config.Dir == nil {
		return nil
	}
	kept, err := readKept(r.config.Dir)
	if errors.Is(err, persist.ErrDamaged) && r.config.Repair {
		r.config.Log.Warn("the limits in the data directory are damaged; the file is kept aside, and those that commands have defined are gone", "error", err)
		kept, err = nil, disk.SetAside(r.config.Dir, KeptName)
	}
	newer := (*persist.NewerError)(nil)
	switch {
	case errors.As(err, &newer):
		return newer.Advise()
	case errors.Is(err, persist.ErrDamaged):
		return fmt.Errorf("%w; restore %s from a backup, or start with --data-recover, which keeps it aside and forgets what CL.LIMIT SET has defined", err, KeptName)
	case err != nil:
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range kept {
		r.byCommand[d.Name] = d
	}
	r.publishLocked()
	return nil
}

// CheckKept reads what is kept in a directory, and returns how many limits and bytes there are. The error is fs.ErrNotExist if
// there is no file, persist.ErrDamaged, persist.ErrNewer or that of the directory.
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

// Rewrite writes what commands have defined once more, if there is something or the file is gone.
func (r *Registry) Rewrite() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.byCommand) == 0 && r.config.Dir.Check(KeptName) == nil {
		return nil
	}
	return r.writeLocked(r.byCommand)
}

func (r *Registry) writeLocked(definitions map[string]Definition) error {
	if r.config.Dir == nil {
		return nil
	}
	sorted := make([]Definition, 0, len(definitions))
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		sorted = append(sorted, definitions[name])
	}
	err := disk.Replace(r.config.Dir, KeptName, keptText(sorted))
	r.unsure = err != nil
	return err
}

// readKept returns nothing if there is no file.
func readKept(dir disk.Dir) ([]Definition, error) {
	text, err := disk.ReadAll(dir, KeptName, maxKeptBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseKept(text)
}

func keptText(definitions []Definition) []byte {
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

func parseKept(text []byte) (definitions []Definition, err error) {
	damaged := fmt.Errorf("%w: %s", persist.ErrDamaged, KeptName)
	var version int
	if n, _ := fmt.Sscanf(string(text), "cellserver limits, format %d\n", &version); n == 1 && version > keptFormat {
		return nil, &persist.NewerError{File: KeptName, Format: version, Newest: keptFormat}
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 3 { // the first, that of the checksum, and nothing behind it
		return nil, damaged
	}
	seen := map[string]bool{}
	for _, line := range lines[1 : len(lines)-2] {
		d, ok := parseLimit(line)
		if _, err := d.rules(); !ok || err != nil || seen[d.Name] {
			return nil, damaged
		}
		seen[d.Name] = true
		definitions = append(definitions, d)
	}
	// What is written again the same has the right checksum, and nothing that was not understood.
	if len(definitions) > MaxNames || !bytes.Equal(keptText(definitions), text) {
		return nil, damaged
	}
	return definitions, nil
}

func parseLimit(line string) (d Definition, ok bool) {
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
		d.Windows = append(d.Windows, Window{numbers[0], numbers[1], numbers[2]})
	}
	return d, true
}
