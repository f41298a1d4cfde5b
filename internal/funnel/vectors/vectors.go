// Package vectors reads the answers of redis-cell's own arithmetic on a virtual clock, for tests: the files
// in internal/funnel/testdata.
package vectors

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Files, each to be run in order on fresh keys.
const (
	WholeMicroseconds = "throttle_whole_us.csv"
	AnyNanosecond     = "throttle_any_ns.csv"
)

// Row is a call and its answer in the columns' order.
type Row struct {
	AtNs                                     int64
	Key                                      string
	MaxBurst, Count, PeriodSec, Quantity     int64
	Limited                                  bool
	Limit, Remaining, RetryAfter, ResetAfter int64
}

// Read returns a file's rows from any directory of the module.
func Read(file string) ([]Row, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(root, "internal", "funnel", "testdata", file))
	if err != nil {
		return nil, fmt.Errorf("vectors: open: %w", err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("vectors: read %s: %w", file, err)
	}
	rows := make([]Row, 0, len(records))
	for i, record := range records[1:] {
		row, err := parse(record)
		if err != nil {
			return nil, fmt.Errorf("vectors: %s, line %d: %w", file, i+2, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func parse(record []string) (r Row, err error) {
	r.Key = record[1]
	var limited int64
	for column, to := range []*int64{
		&r.AtNs, nil, &r.MaxBurst, &r.Count, &r.PeriodSec, &r.Quantity,
		&limited, &r.Limit, &r.Remaining, &r.RetryAfter, &r.ResetAfter,
	} {
		if to == nil {
			continue
		}
		if *to, err = strconv.ParseInt(record[column], 10, 64); err != nil {
			return Row{}, err
		}
	}
	r.Limited = limited == 1
	return r, nil
}

// moduleRoot returns the nearest directory with go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("vectors: find the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("vectors: find the module: no go.mod at or above the working directory")
		}
		dir = parent
	}
}
