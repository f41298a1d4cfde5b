package replication

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store/replicas"
)

// RoleName is the file in the data directory with the role, the files that have its states, and at a graceful
// end the place in a history:
//
//	cellserver role, format 2
//	leader                                   or: replica 10.0.0.1:6380
//	last 10.0.0.2:6380                       of a leader: whom it has followed
//	states 7                                 the newest log; not while these states are in no file
//	history 0123456789abcdef... 52340 9 1017 only of an end without a fault: offset, newest log, next frame
//	crc32c 1a2b3c4d
//
// Format 1 has neither last, states nor checksum, and a history without its log and frame.
const (
	RoleName = "ROLE"
	// statelessRoleName has the role while a full disk lets no file be written, but renamed: without states.
	statelessRoleName = "ROLE.without-states"

	roleFormat   = 2
	roleHeader   = "cellserver role, format "
	maxRoleBytes = 4 << 10
)

type keptRole struct {
	isOld  bool             // of format 1
	leader replicas.Address // zero to lead
	last   replicas.Address // of a leader; zero for none
	states uint64           // 0 for none
	place  place
}

// place is a place in a history, and the files that have its states.
type place struct {
	history  string // "" for none
	offset   int64
	log      uint64
	sequence uint64
}

var errRole = errors.New("replication: " + RoleName + " in the data directory is not readable; remove it to start with --replica-of, or to lead without")

func (r *keptRole) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%d\n", roleHeader, roleFormat)
	if r.leader == (replicas.Address{}) {
		b.WriteString("leader\n")
	} else {
		fmt.Fprintf(&b, "replica %s\n", r.leader)
	}
	if r.last != (replicas.Address{}) {
		fmt.Fprintf(&b, "last %s\n", r.last)
	}
	if r.states != 0 {
		fmt.Fprintf(&b, "states %d\n", r.states)
	}
	if p := &r.place; p.history != "" {
		fmt.Fprintf(&b, "history %s %d %d %d\n", p.history, p.offset, p.log, p.sequence)
	}
	return disk.AppendSum(b.Bytes())
}

func parseRole(text []byte) (*keptRole, error) {
	if body, isOld := strings.CutPrefix(string(text), roleHeader+"1\n"); isOld {
		return parseRoleLines(body, true)
	}
	summed, ok := disk.CutSum(text)
	if !ok {
		return nil, errRole
	}
	header, body, _ := strings.Cut(string(summed), "\n")
	number, isRole := strings.CutPrefix(header, roleHeader)
	version, err := strconv.ParseUint(number, 10, 31)
	switch {
	case !isRole || err != nil:
		return nil, errRole
	case version > roleFormat:
		return nil, fmt.Errorf("replication: %s in the data directory is of format %d, and this version reads formats up to %d; start the later version, or remove the file",
			RoleName, version, roleFormat)
	}
	r, err := parseRoleLines(body, false)
	if err == nil && !bytes.Equal(r.text(), text) { // nothing twice, nothing unknown
		return nil, errRole
	}
	return r, err
}

func parseRoleLines(body string, isOld bool) (*keptRole, error) {
	r, hasRole := &keptRole{isOld: isOld}, false
	for line := range strings.Lines(body) {
		if !strings.HasSuffix(line, "\n") { // it is cut
			return nil, errRole
		}
		words := strings.Fields(line)
		var err error
		switch name := line[:max(0, strings.IndexAny(line, " \n"))]; {
		case name == "leader" && len(words) == 1:
			hasRole = true
		case name == "replica" && len(words) == 2:
			hasRole = true
			r.leader, err = replicas.ParseAddress(words[1])
		case name == "last" && len(words) == 2 && !isOld:
			r.last, err = replicas.ParseAddress(words[1])
		case name == "states" && len(words) == 2 && !isOld:
			r.states, err = strconv.ParseUint(words[1], 10, 64)
		case name == "history":
			r.place, err = parsePlace(words[1:], isOld)
		default:
			err = errRole
		}
		if err != nil {
			return nil, errRole
		}
	}
	if !hasRole {
		return nil, errRole
	}
	return r, nil
}

func parsePlace(words []string, isOld bool) (p place, err error) {
	numbers := 3
	if isOld {
		numbers = 1
	}
	if len(words) != 1+numbers || len(words[0]) != len(newHistory()) {
		return p, errRole
	}
	offset, err := strconv.ParseUint(words[1], 10, 63)
	if p = (place{history: words[0], offset: int64(offset)}); isOld || err != nil {
		return p, err
	}
	log, err := strconv.ParseUint(words[2], 10, 64)
	sequence, err2 := strconv.ParseUint(words[3], 10, 64)
	p.log, p.sequence = log, sequence
	return p, cmp.Or(err, err2)
}

// CheckRole reads a directory's role and returns the file's bytes. It returns fs.ErrNotExist without a file,
// persist.ErrDamaged, or the directory's error.
func CheckRole(dir disk.Dir) (size int64, err error) {
	text, err := disk.ReadAll(dir, RoleName, maxRoleBytes)
	if err != nil {
		return 0, err
	}
	if _, err := parseRole(text); err != nil {
		return int64(len(text)), fmt.Errorf("%w: %w", persist.ErrDamaged, err)
	}
	return int64(len(text)), nil
}

// readRole reads the kept role, nil for none.
func (n *Node) readRole() (*keptRole, error) {
	if n.config.Dir == nil {
		return nil, nil
	}
	text, err := disk.ReadAll(n.config.Dir, RoleName, maxRoleBytes)
	isStateless := errors.Is(err, fs.ErrNotExist)
	if isStateless {
		text, err = disk.ReadAll(n.config.Dir, statelessRoleName, maxRoleBytes)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kept, err := parseRole(text)
	if err == nil && isStateless {
		*kept = keptRole{leader: kept.leader, last: kept.last}
	}
	return kept, err
}

// loadRole reads the kept role, nil for none, and notes whether a start has found its states. The place in a
// history holds for the files that it names.
func (n *Node) loadRole(found persist.Found) (*keptRole, error) {
	kept, err := n.readRole()
	if kept == nil || err != nil {
		return nil, err
	}
	isFound := n.config.Disk == nil || kept.isOld && found.Sequence > 0 || kept.states > 0 && found.Generation >= kept.states
	if p := &kept.place; !isFound || n.config.Disk != nil && !kept.isOld && (p.log != found.Generation || p.sequence != found.Sequence) {
		*p = place{}
	}
	n.file.mu.Lock()
	n.file.exists = true
	n.file.mu.Unlock()
	n.mu.Lock()
	defer n.unlock()
	n.missing, n.last = !isFound, kept.last
	if p := &kept.place; p.history != "" {
		if kept.leader == (replicas.Address{}) {
			n.parent, n.branch = p.history, p.offset
		} else {
			n.history = p.history
		}
		n.backlog.reset(p.offset)
	}
	return kept, nil
}

// roleFile is what a Node knows of the file.
type roleFile struct {
	mu      sync.Mutex // rank 20: guards all below, and is held while writing
	stage   roleStage
	exists  bool
	written *keptRole // nil if unknown
}

// roleStage is whether the role in the directory may be written.
type roleStage uint8

const (
	roleUnread roleStage = iota // not yet: it is the last process's
	roleKept                    // at each change
	rolePlaced                  // no more: the last version is written, with the place
)

// KeepPlace writes the role and the place in the history at the end, after the last change is on the disk.
func (n *Node) KeepPlace() { n.writeRole(true) }

// writeRole writes the latest role, finally with the place.
func (n *Node) writeRole(place bool) {
	f := &n.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stage != roleKept {
		return
	}
	if place {
		f.stage = rolePlaced
	}
	role, never := n.roleToKeep(place)
	if never && !f.exists || n.config.Dir == nil || f.written != nil && f.written.is(&role) {
		return
	}
	f.written, f.exists = nil, true
	err := disk.Replace(n.config.Dir, RoleName, role.text())
	if err == nil {
		f.written = &role
		_ = n.config.Dir.Remove(statelessRoleName) // there is mostly none
		return
	}
	if role.states == 0 { // a full disk has room for another name
		_ = n.config.Dir.Rename(RoleName, statelessRoleName)
		_ = n.config.Dir.SyncDir()
	}
	n.config.Log.Error("cannot keep the role in the data directory; a restart may have another one", "error", err)
}

// is reports whether a role need not be written again: a newer log has the states of an older one.
func (r *keptRole) is(next *keptRole) bool {
	same := *next
	if r.states > 0 && same.states > 0 {
		same.states = r.states
	}
	return *r == same
}

// roleToKeep returns the latest role, and whether there never was another one.
func (n *Node) roleToKeep(withPlace bool) (kept keptRole, never bool) {
	n.mu.Lock()
	defer n.unlock()
	if kept.leader = n.role.leader; kept.leader == (replicas.Address{}) {
		kept.last = n.last
	}
	never = kept == keptRole{} && n.role.number == 0
	if n.config.Disk == nil {
		return kept, never
	}
	st := n.config.Disk.Status()
	if keptAs(&st, n.missing, n.replacing) != replicas.IsKept {
		return kept, never
	}
	kept.states = st.Generation
	if withPlace && n.complete && !n.unkept.Load() && (n.feed != nil || !n.role.isLeader()) {
		kept.place, never = place{n.history, n.backlog.end, st.Generation, st.Sequence}, false
	}
	return kept, never
}
