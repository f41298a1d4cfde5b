// Package vectors reads the answers of redis-cell's own arithmetic on a virtual clock, for tests.
package vectors

import (
	"bytes"
	"embed"
	"encoding/csv"
	"fmt"
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

//go:embed *.csv
var files embed.FS

func Read(file string) ([]Row, error) {
	data, err := files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("vectors: open: %w", err)
	}
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
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
