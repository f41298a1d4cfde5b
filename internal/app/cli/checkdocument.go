package cli

import (
	"errors"
	"time"

	"cellserver/internal/keep/persist"
	"cellserver/internal/limiter"
	"cellserver/internal/migrate/transfer"
)

// checkDocument is a report on a data directory in JSON.
type checkDocument struct {
	Directory string         `json:"directory"`
	State     string         `json:"state"`
	Problem   string         `json:"problem"` // of the manifest
	Files     []checkedFile  `json:"files"`
	Others    []string       `json:"others"` // not part of the data
	LastSeen  *time.Time     `json:"last_seen"`
	LiveKeys  int64          `json:"live_keys"`
	ByKind    []countedKinds `json:"live_keys_by_kind"`
}

type checkedFile struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Frames    int64  `json:"frames"`
	Records   int64  `json:"records"`
	Bytes     int64  `json:"bytes"`
	TornBytes int64  `json:"torn_bytes"`
	Problem   string `json:"problem"`
	Dropped   string `json:"dropped,omitempty"` // what the torn bytes are
}

type countedKinds struct {
	Kind string `json:"kind"`
	Keys int64  `json:"keys"`
}

func checkDocumentOf(path string, r *persist.Report, keys *transfer.LiveKeys) checkDocument {
	d := checkDocument{
		Directory: path, Files: []checkedFile{}, Others: append([]string{}, r.Others...),
		LiveKeys: int64(keys.Count()), ByKind: []countedKinds{},
	}
	d.State, d.Problem = stateOf(r.Err)
	for _, f := range r.Files {
		state, problem := stateOf(f.Err)
		dropped := ""
		if f.Tail.Bytes > 0 {
			dropped = f.Tail.String()
		}
		d.Files = append(d.Files, checkedFile{f.Name, state, f.Frames, f.Records, f.Bytes, f.Tail.Bytes, problem, dropped})
		if d.State == stateOK {
			d.State = state
		}
	}
	if r.ClockNs > 0 {
		at := time.Unix(0, r.ClockNs).UTC()
		d.LastSeen = &at
	}
	for kind, n := range keys.CountKinds() {
		if n > 0 {
			d.ByKind = append(d.ByKind, countedKinds{limiter.Kind(kind).String(), int64(n)})
		}
	}
	return d
}

const stateOK = "ok"

func stateOf(err error) (state, problem string) {
	switch {
	case err == nil:
		return stateOK, ""
	case errors.Is(err, persist.ErrNewer):
		return "newer", err.Error()
	}
	return "damaged", err.Error()
}
