package subprocess

import (
	"io/fs"
	"strconv"
	"strings"
	"syscall"
)

// launcher is the process name under which this program starts itself.
const launcher = "atelier-launcher"

// statusFile is the file descriptor through which the launcher reports an
// error. It is closed when the program has started.
const statusFile = 3

// parseLaunchError parses the error that the launcher reported. It returns nil
// if there is none, which means that the program was started.
func parseLaunchError(status []byte, path string) error {
	number, doing, ok := strings.Cut(strings.TrimSpace(string(status)), " ")
	if !ok {
		return nil
	}
	errno, _ := strconv.Atoi(number) // 0 if the error has no number
	return &fs.PathError{Op: doing, Path: path, Err: syscall.Errno(errno)}
}

// launcherArgs returns the arguments with which this program starts itself as
// the launcher of p.
func (p *Program) launcherArgs() []string {
	return append([]string{
		launcher,
		strconv.FormatInt(p.Limits.Memory, 10),
		strconv.FormatInt(p.Limits.File, 10),
		p.accessRules().String(),
		p.Path,
	}, p.Args...)
}
