package limitsfile

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/limiter/calendar"
)

// Changes of overrides by commands are appended to one file, as readable text:
//
//	cellserver overrides, format 1
//	api "acme" - PLAN enterprise crc32c 1a2b3c4d
//	api "user 7" 1767225600000000000 FUNNEL 20 10 1 crc32c 2b3c4d5e
//	api "acme" - DELETE crc32c 3c4d5e6f
//
// A line has the limit's name, the quoted key, the Unix time in nanoseconds at which the override ends, what
// decides as a command takes it, and the checksum of all that. Its last line may be torn by a crash. From
// format 2 on, the header ends with its checksum like any line, so that a damaged one is not taken for a
// later version's.
const (
	OverridesName = "OVERRIDES"

	overridesFormat = 1
	overridesHeader = "cellserver overrides, format "
	deleteWord      = "DELETE"
	noEnd           = "-"
)

// CheckOverrides reads a directory's overrides and returns their number, the file's bytes, and what is
// dropped of them. It returns fs.ErrNotExist without a file, persist.ErrDamaged, persist.ErrNewer, or the
// directory's error.
func CheckOverrides(dir disk.Dir) (n int, size int64, dropped persist.Tail, err error) {
	kept, err := readOverrides(dir)
	return len(kept.all), kept.size, kept.tail, err
}

func appendOverride(b []byte, o *namedlimit.KeyOverride) []byte {
	from := len(b)
	b = append(append(b, o.Limit...), ' ')
	b = append(strconv.AppendQuote(b, o.Key), ' ')
	if o.UntilNs == 0 {
		b = append(b, noEnd...)
	} else {
		b = strconv.AppendInt(b, o.UntilNs, 10)
	}
	words := []string{deleteWord}
	if !o.Removed {
		words = o.Policy.Words(funnel.Capacity)
	}
	for _, word := range words {
		b = append(append(b, ' '), word...)
	}
	return fmt.Appendf(b, "%s%08x\n", checksumWord, disk.Checksum(b[from:]))
}

const (
	checksumWord  = " crc32c "
	checksumBytes = len(checksumWord) + 8
)

// keptOverrides are the overrides of a file.
type keptOverrides struct {
	all      map[overriddenKey]namedlimit.KeyOverride
	policies map[string]namedlimit.Policy // by their words
	zones    *calendar.Set                // for checks
	size     int64                        // of the file
	tail     persist.Tail                 // its last line, if it is unreadable
}

type overriddenKey struct{ limit, key string }

func readOverrides(dir disk.Dir) (kept keptOverrides, err error) {
	f, err := dir.Open(OverridesName)
	if err != nil {
		return kept, err
	}
	kept = keptOverrides{zones: anyZone(), size: f.Size()}
	kept.all, kept.policies = map[overriddenKey]namedlimit.KeyOverride{}, map[string]namedlimit.Policy{}
	if err := errors.Join(kept.read(bufio.NewReaderSize(f, 1<<16)), f.Close()); err != nil {
		return keptOverrides{size: kept.size}, err
	}
	return kept, nil
}

func (k *keptOverrides) read(r *bufio.Reader) error {
	header, err := r.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var version int
	if n, _ := fmt.Sscanf(string(header), overridesHeader+"%d ", &version); n == 1 && version > overridesFormat && isSound(header) {
		return &persist.NewerError{File: OverridesName, Format: version, Newest: overridesFormat}
	}
	if string(header) != overridesHead() { // which is written before the file has its name
		return fmt.Errorf("%w: %s: no header", persist.ErrDamaged, OverridesName)
	}
	for at := 2; ; at++ {
		line, err := r.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			k.drop(line)
			return nil
		case err != nil:
			return err
		case k.apply(line):
			continue
		}
		_, err = r.Peek(1)
		isLast := errors.Is(err, io.EOF)
		switch {
		case isLast && !isSound(line) && !hasTwo(line):
			k.drop(line)
			return nil
		case isLast || err == nil:
			err = fmt.Errorf("%w: %s: line %d", persist.ErrDamaged, OverridesName, at)
		}
		return err
	}
}

// drop records the unreadable last line. A crash of the machine leaves zeros in what it has not written.
func (k *keptOverrides) drop(line []byte) {
	n := int64(len(line))
	k.tail = persist.Tail{File: OverridesName, At: k.size - n, Bytes: n}
	ended := bytes.HasSuffix(line, []byte("\n")) || n > 0 && isSound(append(bytes.Clone(line[:n-1]), '\n'))
	zeros := bytes.Contains(line, []byte{0, 0}) || bytes.HasSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte{0})
	k.tail.Complete = ended && !zeros
}

func overridesHead() string { return overridesHeader + strconv.Itoa(overridesFormat) + "\n" }

// isSound reports whether a line has its checksum.
func isSound(line []byte) bool {
	at := len(line) - checksumBytes - 1
	return at >= 0 && string(line[at:]) == fmt.Sprintf("%s%08x\n", checksumWord, disk.Checksum(line[:at]))
}

// hasTwo reports whether a line has another one at its beginning and more than a newline behind it, which no
// write leaves.
func hasTwo(line []byte) bool {
	_, rest, _ := bytes.Cut(line, []byte(" "))
	quoted, _ := strconv.QuotedPrefix(string(rest))
	end := bytes.Index(rest[len(quoted):], []byte(checksumWord)) + checksumBytes
	at := len(line) - len(rest) + len(quoted) + end
	return end >= checksumBytes && at+1 < len(line) && isSound(append(slices.Clip(line[:at]), '\n'))
}

// apply applies a line's change, unless it is unreadable.
func (k *keptOverrides) apply(line []byte) bool {
	o, ok := k.change(line)
	switch is := (overriddenKey{o.Limit, o.Key}); {
	case !ok:
		return false
	case o.Removed:
		delete(k.all, is)
	default:
		k.all[is] = o
	}
	return true
}

// change reads a line, and reports whether it is readable.
func (k *keptOverrides) change(line []byte) (o namedlimit.KeyOverride, ok bool) {
	if !isSound(line) {
		return o, false
	}
	limit, rest, _ := bytes.Cut(line[:len(line)-checksumBytes-1], []byte(" "))
	quoted, err := strconv.QuotedPrefix(string(rest))
	if err != nil || quoted[0] != '"' || namedlimit.CheckName(limit) != nil {
		return o, false
	}
	o.Limit = string(limit)
	if o.Key, err = strconv.Unquote(quoted); err != nil {
		return o, false
	}
	words := strings.Split(string(rest[len(quoted):]), " ") // begins with a space
	if len(words) < 3 || words[0] != "" {
		return o, false
	}
	if words[1] != noEnd {
		if o.UntilNs, err = strconv.ParseInt(words[1], 10, 64); err != nil {
			return o, false
		}
	}
	if words = words[2:]; len(words) == 1 && words[0] == deleteWord {
		o.Removed = true
		return o, true
	}
	o.Policy, ok = k.policy(words)
	return o, ok
}

// policy reads equal policies once.
func (k *keptOverrides) policy(words []string) (p namedlimit.Policy, ok bool) {
	text := strings.Join(words, " ")
	if p, ok = k.policies[text]; ok {
		return p, true
	}
	p, rest, err := namedlimit.ReadPolicy(words, funnel.Capacity)
	if err != nil || len(rest) > 0 {
		return p, false
	}
	if p.Plan != "" {
		err = namedlimit.CheckName([]byte(p.Plan))
	} else {
		err = p.Check(k.zones)
	}
	if err != nil {
		return p, false
	}
	k.policies[text] = p
	return p, true
}

// sorted returns all by limit and key.
func (k *keptOverrides) sorted() []namedlimit.KeyOverride {
	return slices.SortedFunc(maps.Values(k.all), func(a, b namedlimit.KeyOverride) int {
		return cmp.Or(strings.Compare(a.Limit, b.Limit), strings.Compare(a.Key, b.Key))
	})
}
