"""SciPy's solvers with exact, compiled derivatives: the names and arguments are SciPy's."""

from tapegrad.scipy.fitting import curve_fit, least_squares
from tapegrad.scipy.integrals import quad
from tapegrad.scipy.minimizing import minimize
from tapegrad.scipy.odes import solve_ivp
from tapegrad.scipy.roots import root

__all__ = ["curve_fit", "least_squares", "minimize", "quad", "root", "solve_ivp"]
