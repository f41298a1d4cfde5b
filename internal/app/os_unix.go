//go:build unix

package app

import (
	"io/fs"
	"net"
	"os"
	"syscall"
)

// listenWithMode sets the socket's permissions between bind and listen: before listen nobody can connect,
// whatever the umask.
func listenWithMode(path string, mode fs.FileMode) (net.Listener, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close() // the listener has its own descriptor
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		return nil, os.NewSyscallError("bind", err)
	}
	l, err := listenBound(file, path, mode)
	if err != nil {
		_ = os.Remove(path)
		return nil, err
	}
	return l, nil
}

// listenBacklog may be lowered by the system.
const listenBacklog = 4096

func listenBound(file *os.File, path string, mode fs.FileMode) (net.Listener, error) {
	if err := os.Chmod(path, mode); err != nil {
		return nil, err
	}
	if err := syscall.Listen(int(file.Fd()), listenBacklog); err != nil {
		return nil, os.NewSyscallError("listen", err)
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(true)
	return l, nil
}

const (
	otherFiles = 48 // descriptors reserved for everything but clients
	loopFiles  = 2  // descriptors per event loop
)

// FitMaxClients lowers maxClients to fit the limit of open files, as Redis does.
func FitMaxClients(maxClients, ioThreads int) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return maxClients
	}
	fitting := int(min(uint64(limit.Cur), 1<<31)) - otherFiles - loopFiles*ioThreads //nolint:unconvert // signed on some systems
	if fitting >= maxClients || fitting < 1 {
		return maxClients
	}
	return fitting
}
