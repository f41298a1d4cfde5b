package envoyconfig

import "time"

// Source is where rules come from.
type Source uint8

const (
	NoSource Source = iota
	Files
	XDS
)

func (s Source) String() string { return [...]string{"none", "files", "xds"}[s] }

// Status is what limits for Envoy there are, and where they come from.
type Status struct {
	Source Source
	From   string // the directory of Files, or host:port of the server of XDS
	Rules  *Rules // nil before the first, and without a source
	Failed bool   // the last load of Files, so that earlier rules are in use
	Loads  Loads  // of either source
	XDS    XDSStatus
}

// Loads counts loads of a configuration; one over xDS that an earlier process has kept is none.
type Loads struct{ Done, Failed uint64 }

// XDSStatus is what is known of rules that come over xDS.
type XDSStatus struct {
	Connected bool   // a stream is open
	Loaded    bool   // there are rules
	Version   string // of the rules
	Stale     bool   // they were kept by an earlier process, and no server has answered since
	Since     time.Time
	Accepted  uint64 // versions that were taken
	Rejected  uint64 // answers that were refused
	Unkept    uint64 // versions that were taken but could not be kept for another start
	Refusal   string // why the latest answer was refused; empty if it was taken
	Failure   string // why the latest stream ended; empty while one is open
}
