"""One mistake a line, each with a mark that says what `mypy --strict` must find there."""

import numpy as np

import implicit_bias as ib

X, y = np.eye(4), np.array([1.0, 1.0, -1.0, -1.0])
contexts = np.zeros((4, 2), dtype=np.int64)

limit = ib.solve_gln_svm(X, y, contexts)
limit.gapp  # E: attr-defined
limit.zeta.shpae  # E: attr-defined
limit.require().objectiv  # E: attr-defined
limit.predictor(X, contexts).mim()  # E: attr-defined
limit.certificate.gapp  # E: attr-defined
limit.status.nmae  # E: attr-defined
ib.solve_gln_svm(X, y)  # E: call-arg
ib.solve_gln_svm(X, y, contexts, solver="interior-pont")  # E: arg-type
ib.solve_gln_svm(X, y, contexts, toll=1e-6)  # E: call-arg
ib.solve_linear_svm("X", y)  # E: arg-type
ib.solve_linear_svm(X, 3)  # E: call-overload
ib.limits.solve_dlgn_svm(X, y, contexts, experts="konstant")  # E: arg-type

ib.run(3)  # E: type-var
ib.run("gln", trainer="annealled")  # E: arg-type
ib.run("gln", trainer=("momentum", "annealled"))  # E: arg-type
ib.run("gln", cutoffs="medain")  # E: arg-type
ib.run("gln", loss="logstic")  # E: arg-type
ib.run("gln", init="ortogonal")  # E: arg-type
ib.run("gln", classes="al")  # E: type-var
ib.run("gln", solver="cvxpy:CLARABELL")  # E: arg-type
ib.run("gln", device="cude")  # E: arg-type
ib.run("gln", dtype="float46")  # E: arg-type
ib.run("gln", hiden_units=3)  # E: call-arg
ib.run("gln", steps="many")  # E: arg-type
ib.run("gln", X="digits.npz", y=y)  # E: arg-type
ib.run("gln", X=X, y=3)  # E: arg-type
ib.run("gln", gating=contexts)  # E: arg-type
ib.run("dgn", regime="lasy")  # E: type-var

ib.run(str(contexts), hiden_units=3)  # E: call-arg

report = ib.run("gln")
report.limitt  # E: attr-defined
report.limit.gapp  # E: attr-defined
report.comparison.margin_ration  # E: attr-defined
report.trajectory.los  # E: attr-defined
report.network.forwrd(X)  # E: operator
ib.run("linear", classes="all").limit.gap  # E: attr-defined
ib.run("gdln").limit.objective  # E: attr-defined
ib.run("heads").limit.require()  # E: attr-defined
report.by_trainer["annealed"].comparison.ratio  # E: attr-defined

ib.load("runs/x").limitt  # E: attr-defined
ib.load("runs/x").limit.gapp  # E: attr-defined
ib.load("limit.safetensors", ib.limits.GLNLimit).gapp  # E: attr-defined

ib.Sample(X, 3)  # E: call-overload
ib.Sample(X, y).X.shpae  # E: attr-defined
ib.Sample(X, y).gates.shape  # E: union-attr

ib.TrainingSettings(trainer="annealled")  # E: arg-type
ib.TrainingSettings(loss="logstic")  # E: arg-type
ib.HyperplaneContexts(cutoffs="medain")  # E: arg-type
ib.HyperplaneContexts().fit_transform(X).shpae  # E: attr-defined
ib.estimators.GLNLimitClassifier(on_inseparable="rais")  # E: arg-type
ib.estimators.LinearLimitClassifier(solver="interior-pont")  # E: arg-type
ib.GLN(4, 2, 2, init="ortogonal")  # E: arg-type
ib.optim.Momentum([], n_samples=4, loss="squared")  # E: arg-type
ib.sweep(3, {"seed": [0]}, out="s")  # E: arg-type
ib.sweep("gln", {"seed": [0]}, out="s", engine="slrum")  # E: arg-type
ib.sweep("gln", {"sead": [0]}, out="s")  # E: arg-type
ib.sweep("gln", {"seed": ["first"]}, out="s")  # E: arg-type
ib.sweep("gln", {"cutoffs": ["median", "axis"]}, out="s")  # E: arg-type
ib.sweep("gln", {"seed": [0]}, out="s", hiden_units=3)  # E: call-arg
ib.sweep("gln", {"seed": [0]}, out="s", cutoffs="medain")  # E: arg-type
