package envoyconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
)

// KeptName is the file in the data directory with the last good configuration over xDS: a line of text, the
// answer as it came, and disk.AppendSum's line. A server starts without it, too.
const KeptName = "ENVOY"

const (
	keptFormat   = 1
	maxKeptBytes = 1<<30 + 1<<10 // exceeds the longest answer
)

func keptHeader(format int) string {
	return fmt.Sprintf("cellserver limits for Envoy, format %d\n", format)
}

// Kept keeps a configuration in a data directory. It is safe for concurrent use.
type Kept struct {
	dir disk.Dir

	mu   sync.Mutex // rank 20: guards last, and serializes writing
	last []byte     // saved; nil for nothing
}

func NewKept(dir disk.Dir) *Kept { return &Kept{dir: dir} }

// Load returns what was saved, nil for nothing.
func (k *Kept) Load() ([]byte, error) {
	answer, err := readKept(k.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.last = answer
	}
	return answer, err
}

func (k *Kept) Save(answer []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = answer
	return k.writeLocked()
}

// Rewrite writes again what was saved last, after a loss of the directory.
func (k *Kept) Rewrite() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		return nil
	}
	return k.writeLocked()
}

func (k *Kept) writeLocked() error {
	return disk.Replace(k.dir, KeptName, disk.AppendSum(append([]byte(keptHeader(keptFormat)), k.last...)))
}

// CheckKept reads a directory's file and returns its bytes. It returns fs.ErrNotExist without a file,
// persist.ErrDamaged, persist.ErrNewer, or the directory's error.
func CheckKept(dir disk.Dir) (size int64, err error) {
	f, err := dir.Open(KeptName)
	if err != nil {
		return 0, err
	}
	size = f.Size()
	_ = f.Close() // nothing was written
	_, err = readKept(dir)
	return size, err
}

func readKept(dir disk.Dir) ([]byte, error) {
	text, err := disk.ReadAll(dir, KeptName, maxKeptBytes)
	if err != nil {
		return nil, err
	}
	var version int
	rest, isWhole := disk.CutSum(text)
	header, answer, _ := bytes.Cut(rest, []byte("\n"))
	n, _ := fmt.Sscanf(string(header), "cellserver limits for Envoy, format %d", &version)
	switch {
	case isWhole && n == 1 && version > keptFormat:
		return nil, &persist.NewerError{File: KeptName, Format: version, Newest: keptFormat}
	case !isWhole || string(header)+"\n" != keptHeader(keptFormat):
		return nil, fmt.Errorf("%w: %s", persist.ErrDamaged, KeptName)
	}
	return answer, nil
}
