package actions

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"cellserver/internal/wire/acl"
)

// Bounds of sessions:
const (
	maxSessions        = 128
	maxSessionsPerUser = 8
	maxQuestions       = 8 // of a session that wait for their confirmation

	idleTime     = 15 * time.Minute // from the last action to the end of a session
	lifeTime     = 8 * time.Hour
	questionTime = 5 * time.Minute
)

// digest is the hash of a token, so that memory holds none that is worth reading.
type digest = [sha256.Size]byte

// sessions are those of users that have signed in.
type sessions struct {
	users *acl.Users

	mu   sync.Mutex // rank 85: guards all below
	open map[digest]*session
}

// session is a user's. A browser knows its token.
type session struct {
	user             *acl.User
	password         digest // with which the user signed in
	openedNs, usedNs int64
	questions        []question // oldest first
	shown            *Question  // by the page, for a browser without scripts
	outcome          *Outcome   // likewise, once
}

// question is an action that waits for its confirmation.
type question struct {
	token   digest
	askedNs int64
	action  action
}

// begin opens a session and returns its token. Beyond a bound it ends the one that has been idle for longest.
func (s *sessions) begin(user *acl.User, password digest, nowNs int64) (token string) {
	token = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purgeLocked(nowNs)
	s.endOldestLocked(maxSessionsPerUser, func(of *session) bool { return of.user == user })
	s.endOldestLocked(maxSessions, func(*session) bool { return true })
	if s.open == nil {
		s.open = map[digest]*session{}
	}
	s.open[sha256.Sum256([]byte(token))] = &session{user: user, password: password, openedNs: nowNs, usedNs: nowNs}
	return token
}

func (s *sessions) purgeLocked(nowNs int64) {
	for token, of := range s.open {
		if !s.isValid(of, nowNs) {
			delete(s.open, token)
		}
	}
}

// endOldestLocked makes room for another session of those that are meant.
func (s *sessions) endOldestLocked(most int, isMeant func(*session) bool) {
	var meant []digest
	for token, of := range s.open {
		if isMeant(of) {
			meant = append(meant, token)
		}
	}
	if len(meant) >= most {
		delete(s.open, slices.MinFunc(meant, func(a, b digest) int { return cmp.Compare(s.open[a].usedNs, s.open[b].usedNs) }))
	}
}

// isValid reports whether a session has not ended: by time, or as its user could not sign in again.
func (s *sessions) isValid(of *session, nowNs int64) bool {
	user := of.user
	return nowNs-of.usedNs <= int64(idleTime) && nowNs-of.openedNs <= int64(lifeTime) &&
		s.users.Lookup(user.Name()) == user && user.Enabled() && user.NeedsPassword() && user.HasPassword(of.password)
}

// findLocked returns a session, or nil.
func (s *sessions) findLocked(token string, nowNs int64) *session {
	id := sha256.Sum256([]byte(token))
	of := s.open[id]
	if of != nil && !s.isValid(of, nowNs) {
		delete(s.open, id)
		return nil
	}
	return of
}

// use returns the user of a session, or nil, and starts its idle time anew.
func (s *sessions) use(token string, nowNs int64) *acl.User {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.findLocked(token, nowNs)
	if of == nil {
		return nil
	}
	of.usedNs, of.shown, of.outcome = nowNs, nil, nil
	return of.user
}

// end ends a session, and returns its user or nil.
func (s *sessions) end(token string, nowNs int64) *acl.User {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.findLocked(token, nowNs)
	if of == nil {
		return nil
	}
	delete(s.open, sha256.Sum256([]byte(token)))
	return of.user
}

// ask keeps an action until it is confirmed with the token that ask returns.
func (s *sessions) ask(token string, a action, nowNs int64) (confirmation string) {
	confirmation = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.findLocked(token, nowNs); of != nil {
		if n := len(of.questions); n >= maxQuestions {
			of.questions = slices.Delete(of.questions, 0, n-maxQuestions+1)
		}
		of.questions = append(of.questions, question{sha256.Sum256([]byte(confirmation)), nowNs, a})
	}
	return confirmation
}

// confirmed returns the action of a session's question, once.
func (s *sessions) confirmed(token, confirmation string, nowNs int64) (a action, ok bool) {
	id := sha256.Sum256([]byte(confirmation))
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.findLocked(token, nowNs)
	if of == nil {
		return a, false
	}
	i := slices.IndexFunc(of.questions, func(q question) bool { return q.token == id })
	if i < 0 {
		return a, false
	}
	asked := of.questions[i]
	of.questions = slices.Delete(of.questions, i, i+1)
	return asked.action, nowNs-asked.askedNs <= int64(questionTime)
}

// show has the page show a question, or an outcome once.
func (s *sessions) show(token string, q *Question, o *Outcome, nowNs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.findLocked(token, nowNs); of != nil {
		of.shown, of.outcome = q, o
	}
}

// look returns what the page shows. It does not count as use.
func (s *sessions) look(token string, takes bool, nowNs int64) (user string, q *Question, o *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.findLocked(token, nowNs)
	if of == nil {
		return "", nil, nil
	}
	q, o = of.shown, of.outcome
	if takes {
		of.outcome = nil
	}
	return of.user.Name(), q, o
}
