// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// The programs that a pod "has". `say TEXT` writes to the pod's log.
var programs = map[string]bool{"sh": true, "tar": true, "cat": true, "echo": true, "sleep": true}

// ExecInContainer runs a program of this machine in the pod's folder.
func (p *pod) ExecInContainer(ctx context.Context, _ string, _ types.UID, _ string, argv []string,
	in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize,
	_ time.Duration) error {
	if len(argv) > 0 && argv[0] == "say" {
		return p.host.say(p.namespace, p.name, strings.Join(argv[1:], " "))
	}
	if len(argv) == 0 || !programs[argv[0]] {
		return fmt.Errorf("exec failed: %q: executable file not found in $PATH", argv)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = p.host.path(p.namespace, p.name)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + cmd.Dir, "TERM=dumb"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if tty {
		err = runOnTerminal(cmd, in, out, resize)
	} else {
		err = runOnPipes(cmd, in, out, errOut)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

// The pipe to stdin is ours: a program that ends first must not wait for the client's stdin.
func runOnPipes(cmd *exec.Cmd, in io.Reader, out, errOut io.WriteCloser) error {
	if out != nil {
		cmd.Stdout = out
	}
	if errOut != nil {
		cmd.Stderr = errOut
	}
	if in != nil {
		pipe, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(pipe, in)
			_ = pipe.Close()
		}()
	}
	return cmd.Run()
}

func runOnTerminal(cmd *exec.Cmd, in io.Reader, out io.WriteCloser,
	resize <-chan remotecommand.TerminalSize) error {
	ours, theirs, err := openTerminal()
	if err != nil {
		return err
	}
	defer ours.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return err
	}
	go func() {
		for size := range resize {
			_ = unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ,
				&unix.Winsize{Row: size.Height, Col: size.Width})
		}
	}()
	if in != nil {
		go func() { _, _ = io.Copy(ours, in) }()
	}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		_, _ = io.Copy(out, ours) // ends with EIO when the last process has left
	}()
	err = cmd.Wait()
	<-shown
	return err
}

func openTerminal() (ours, theirs *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours = os.NewFile(uintptr(fd), "/dev/ptmx")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		ours.Close()
	}
	return ours, theirs, err
}
