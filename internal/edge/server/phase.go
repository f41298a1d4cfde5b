package server

import (
	"fmt"

	"cellserver/internal/wire/peer"
)

// on is the table of a connection's life, the same for both drivers: what an event leads to in each phase,
// and what the driver does then. An event that is not in a phase's row cannot happen in it.
func (p phase) on(e event) step {
	return [phases][events]step{
		phaseStarting: {onAdmitted: {phaseIdle, awaitInput}, onEndGently: {phaseFinishing, awaitReader}, onClose: {phaseClosed, release}},
		phaseIdle: {
			onInput:     {phaseExecuting, keepDeadline},
			onWoken:     {phaseExecuting, awaitInput},
			onEnd:       {phaseFlushing, awaitReader},
			onEndGently: {phaseFinishing, awaitReader},
			onClose:     {phaseClosed, release},
		},
		phaseExecuting: {
			onNeedInput: {phaseIdle, awaitInput},
			onMore:      {phaseExecuting, awaitInput},
			onWaiting:   {phaseWaiting, awaitWake},
			onWoken:     {phaseExecuting, awaitInput},
			onBlocked:   {phaseBlocked, awaitReader},
			onHandOver:  {phaseClosed, handOver},
			onEnd:       {phaseFlushing, awaitReader},
			onEndGently: {phaseFinishing, awaitReader},
			onClose:     {phaseClosed, release},
		},
		phaseWaiting: {onWoken: {phaseExecuting, awaitInput}, onReset: {phaseWaiting, awaitWake}, onClose: {phaseClosed, release}},
		phaseBlocked: {
			onNeedInput: {phaseBlocked, keepDeadline},
			onMore:      {phaseBlocked, keepDeadline},
			onWaiting:   {phaseBlockedWaiting, keepDeadline},
			onWoken:     {phaseBlocked, keepDeadline},
			onResumed:   {phaseExecuting, awaitInput},
			onHandOver:  {phaseClosed, handOver},
			onEndGently: {phaseFinishing, awaitReader},
			onClose:     {phaseClosed, release},
		},
		phaseBlockedWaiting: {
			onWoken:   {phaseBlocked, keepDeadline},
			onResumed: {phaseWaiting, awaitWake},
			onReset:   {phaseWaiting, awaitWake},
			onClose:   {phaseClosed, release},
		},
		phaseFlushing:  {onWoken: {phaseFlushing, keepDeadline}, onFlushed: {phaseClosed, release}, onClose: {phaseClosed, release}},
		phaseFinishing: {onWoken: {phaseFinishing, keepDeadline}, onFlushed: {phaseLingering, awaitHangup}, onClose: {phaseClosed, release}},
		phaseLingering: {onWoken: {phaseLingering, keepDeadline}, onClose: {phaseClosed, release}},
		phaseClosed:    {onWoken: {phaseClosed, keepDeadline}, onClose: {phaseClosed, keepDeadline}},
	}[p][e]
}

// phase is how far a connection's life has come.
type phase uint8

const (
	phaseStarting       phase = iota // there is no session yet
	phaseIdle                        // the session needs input
	phaseExecuting                   // the session may have more to execute of its input
	phaseWaiting                     // the session is Waiting
	phaseBlocked                     // too many replies are unread: nothing is read or executed
	phaseBlockedWaiting              // both
	phaseFlushing                    // closes when its replies are sent
	phaseFinishing                   // lingers when its replies are sent
	phaseLingering                   // drops input until the client closes too
	phaseClosed
	phases
)

// event is what happens to a connection.
type event uint8

const (
	onAdmitted  event = iota // it has a session
	onInput                  // bytes were read
	onNeedInput              // Feed returned NeedInput
	onMore                   // Feed returned More
	onWaiting                // Feed returned Waiting
	onHandOver               // Feed returned HandOver
	onWoken                  // Wake was called
	onBlocked                // more replies are unread than may be
	onResumed                // the client has read enough of them
	onReset                  // the client takes no more replies, and its session is Waiting
	onEnd                    // the connection ends once its replies are sent
	onEndGently              // the same, by lingering
	onFlushed                // all replies are sent
	onClose                  // the connection ends at once
	events
)

// effect is what a driver does at an event. Most set the deadline.
type effect uint8

const (
	illegal      effect = iota // the event cannot happen
	keepDeadline               // nothing
	awaitInput                 // until life.inputDueNs
	awaitWake                  // for any time
	awaitReader                // until Limits.OutputTimeout
	awaitHangup                // until lingerTimeout
	handOver                   // passes the connection on, and ends the rest
	release                    // ends all that belongs to the connection
)

// step is an event's result.
type step struct {
	to phase
	do effect
}

// move moves the connection's phase. It panics if the event cannot happen, which is a driver's bug.
func (l *life) move(e event) effect {
	s := l.phase.on(e)
	if s.do == illegal {
		panic(fmt.Sprintf("server: event %d in phase %d", e, l.phase))
	}
	l.phase = s.to
	return s.do
}

// takesInput reports whether the client is read from.
func (p phase) takesInput() bool { return p == phaseLingering || p.isOpen() }

// isOpen reports whether commands are read and executed.
func (p phase) isOpen() bool { return p == phaseIdle || p == phaseExecuting }

func (p phase) isWaiting() bool { return p == phaseWaiting || p == phaseBlockedWaiting }

func (p phase) isBlocked() bool { return p == phaseBlocked || p == phaseBlockedWaiting }

func (p phase) isFlushing() bool { return p == phaseFlushing || p == phaseFinishing }

// fedEvent returns the event of a Feed after which the connection goes on.
func fedEvent(s peer.Status) event {
	switch s {
	case peer.More:
		return onMore
	case peer.Waiting:
		return onWaiting
	case peer.HandOver:
		return onHandOver
	default:
		return onNeedInput
	}
}

// endEvent returns the event of an end for a reason.
func endEvent(r Reason) event {
	if r.Lingers() {
		return onEndGently
	}
	return onEnd
}
