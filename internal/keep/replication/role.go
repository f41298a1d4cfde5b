package replication

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store/replicas"
)

// RoleName is the file in the data directory with the role, and at a graceful end the place in a history:
//
//	cellserver role, format 1
//	leader                                   or: replica 10.0.0.1:6380
//	history 0123456789abcdef... 52340        only of an end without a fault
const (
	RoleName = "ROLE"

	roleHeader   = "cellserver role, format 1\n"
	maxRoleBytes = 4 << 10
)

type keptRole struct {
	leader  replicas.Address // zero to lead
	history string           // "" if its place is unknown
	offset  int64
}

var errRole = errors.New("replication: " + RoleName + " in the data directory is not readable; remove it to start with --replica-of, or to lead without")

func (r *keptRole) text() []byte {
	text := roleHeader + "leader\n"
	if r.leader != (replicas.Address{}) {
		text = roleHeader + "replica " + r.leader.String() + "\n"
	}
	if r.history != "" {
		text += fmt.Sprintf("history %s %d\n", r.history, r.offset)
	}
	return []byte(text)
}

func parseRole(text string) (*keptRole, error) {
	body, ok := strings.CutPrefix(text, roleHeader)
	if !ok {
		return nil, errRole
	}
	r := &keptRole{}
	for line := range strings.Lines(body) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && words[0] == "leader":
		case len(words) == 2 && words[0] == "replica":
			a, err := replicas.ParseAddress(words[1])
			if err != nil {
				return nil, errRole
			}
			r.leader = a
		case len(words) == 3 && words[0] == "history" && len(words[1]) == len(newHistory()):
			offset, err := strconv.ParseUint(words[2], 10, 63)
			if err != nil {
				return nil, errRole
			}
			r.history, r.offset = words[1], int64(offset)
		default:
			return nil, errRole
		}
	}
	if string(r.text()) != text { // it is cut
		return nil, errRole
	}
	return r, nil
}

// loadRole reads the kept role, nil for none. The place in a history holds for this start only.
func (n *Node) loadRole() (*keptRole, error) {
	if n.config.Dir == nil {
		return nil, nil
	}
	text, err := disk.ReadAll(n.config.Dir, RoleName, maxRoleBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kept, err := parseRole(string(text))
	if err != nil || kept.history == "" {
		return kept, err
	}
	n.mu.Lock()
	if kept.leader == (replicas.Address{}) {
		n.parent, n.branch = kept.history, kept.offset
	} else {
		n.history = kept.history
	}
	n.backlog.reset(kept.offset)
	n.mu.Unlock()
	return kept, disk.Replace(n.config.Dir, RoleName, (&keptRole{leader: kept.leader}).text())
}

// keepRole writes the wanted role to the data directory in the background, without a place: more may change.
func (n *Node) keepRole() {
	if n.config.Dir != nil {
		go n.writeRole(false)
	}
}

// KeepPlace writes the role and the place in the history at the end, after the last change is on the disk.
func (n *Node) KeepPlace() { n.writeRole(true) }

// writeRole writes the latest role, finally with the place.
func (n *Node) writeRole(place bool) {
	n.writing.Lock()
	defer n.writing.Unlock()
	if n.placed {
		return
	}
	n.placed = place
	n.mu.Lock()
	kept := keptRole{leader: n.wanted.leader}
	if place && n.complete && !n.unkept.Load() && (n.feed != nil || n.role == replicas.Replica) {
		kept.history, kept.offset = n.history, n.backlog.end
	}
	never := kept == keptRole{} && n.wanted.n == 0
	n.mu.Unlock()
	if never || n.config.Dir == nil {
		return
	}
	if err := disk.Replace(n.config.Dir, RoleName, kept.text()); err != nil {
		n.config.Log.Error("cannot keep the role in the data directory; a restart may have another one", "error", err)
	}
}
