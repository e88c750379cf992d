// SPDX-License-Identifier: Apache-2.0

// The programs of Kubernetes, etcd and kubectl in one, for the tests of the launcher. The name that it is called by says which of them
// runs. scripts/get-cluster builds it, with a link for each name.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// Each gives its exit code.
var programs = map[string]func() int{
	"etcd": func() int {
		etcdmain.Main(os.Args)
		return 0
	},
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllers.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"kubectl": func() int {
		if cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()) != nil {
			return 1
		}
		return 0
	},
}

func main() {
	name := filepath.Base(os.Args[0])
	program, found := programs[name]
	if !found {
		fmt.Fprintf(os.Stderr, "there is no program %q in %s\n", name, os.Args[0])
		os.Exit(2)
	}
	os.Exit(program())
}
