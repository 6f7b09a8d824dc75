// The operator of the benchmark, written with controller-runtime: a ConfigMap for each Gadget, and a status.
//
// It is written as its users would for speed: typed objects, reads from the cache, GenerationChangedPredicate, JSON for
// the custom kind and protobuf for ConfigMaps (the client's default), and no client-side rate limit.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	runnable "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func main() {
	path := flag.String("ledger", "", "file that the benchmark made")
	workers := flag.Int("workers", 8, "concurrent reconciles")
	flag.Parse()
	if err := run(*path, *workers); err != nil {
		log.Fatal(err)
	}
}

func run(path string, workers int) error {
	book, err := openLedger(path)
	if err != nil {
		return err
	}
	collectWhenAsked(book)
	ctrl.SetLogger(logr.Discard())
	config, err := ctrl.GetConfig() // controller-runtime has a flag for the kubeconfig
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit
	scheme := kruntime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	addToScheme(scheme)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Gadget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{manager.GetClient(), scheme, book})
	if err != nil {
		return err
	}
	err = manager.Add(runnable.RunnableFunc(func(ctx context.Context) error { // started when the caches are filled
		book.setReady()
		return nil
	}))
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

type reconciler struct {
	client.Client
	scheme *kruntime.Scheme
	book   *ledger
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	started := time.Now()
	defer r.book.called()
	var gadget Gadget
	if err := r.Get(ctx, request.NamespacedName, &gadget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !gadget.Spec.Enabled {
		return ctrl.Result{}, nil
	}
	if err := r.ensureConfigMap(ctx, &gadget); err != nil {
		return ctrl.Result{}, err
	}
	if gadget.Status.Observed == gadget.Spec.Sequence {
		return ctrl.Result{}, nil
	}
	before := gadget.DeepCopy()
	gadget.Status.Observed = gadget.Spec.Sequence
	if err := r.Status().Patch(ctx, &gadget, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, err
	}
	changed, _ := strconv.ParseInt(gadget.Spec.Sequence, 10, 64)
	r.book.done(changed, started)
	return ctrl.Result{}, nil
}

func (r *reconciler) ensureConfigMap(ctx context.Context, gadget *Gadget) error {
	var found corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKeyFromObject(gadget), &found)
	if apierrors.IsNotFound(err) {
		wanted := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: gadget.Name, Namespace: gadget.Namespace},
			Data:       map[string]string{"sequence": gadget.Spec.Sequence},
		}
		if err := ctrl.SetControllerReference(gadget, wanted, r.scheme); err != nil {
			return err
		}
		return r.Create(ctx, wanted)
	}
	if err != nil || found.Data["sequence"] == gadget.Spec.Sequence {
		return err
	}
	before := found.DeepCopy()
	found.Data = map[string]string{"sequence": gadget.Spec.Sequence}
	return r.Patch(ctx, &found, client.MergeFrom(before))
}

// collectWhenAsked gives memory back that nobody uses, on SIGUSR1.
func collectWhenAsked(book *ledger) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			runtime.GC()
			debug.FreeOSMemory()
			book.collected()
		}
	}()
}
