"""Linear algebra. What is different by a sign is squared; test/test_linalg.py has more."""

import numpy as np


def near_identity(*shape):
  return lambda r: (np.eye(shape[-1]) * 3 + r.uniform(-1, 1, shape)).astype(np.float32)


INPUTS = {
  "A": near_identity(2, 3, 3),
  "B": near_identity(3, 3),
  "C": lambda r: r.standard_normal((4, 3)).astype(np.float32),
  "D": lambda r: r.standard_normal((2, 3, 4)).astype(np.float32),
  "N": lambda r: np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1]], np.float32),
  "Z": lambda r: np.array([[[1, 2], [2, 4]], [[2, 0], [0, 3]]], np.float32),
}

ROWS = """
f: A.inverse()   A.det()   B.det()   A[:,None].det()   A.logdet()   A.slogdet()   (A@A.mT).cholesky()   (B@B.T).cholesky(upper=True)   C.pinverse()   B.trace()   B.matrix_power(3)   A.matrix_power(-2)   A.matrix_power(0)   A.matrix_exp()
f: A.inv() => np.linalg.inv(A)   C.pinv() => np.linalg.pinv(C)   C.pinv(0.01) => np.linalg.pinv(C,0.01)   A.cond() => np.linalg.cond(A)   B.cond(-2) => np.linalg.cond(B,-2)
f: C.qr()[0]   C.qr()[1]   C.svd()[0]**2   C.svd()[1]   C.svd()[2]**2   C.svd(compute_uv=False)[1]
f: (A+A.mT).eigh()[0] => np.linalg.eigh(A+A.swapaxes(1,2))[0]   (A+A.mT).eigh()[1]**2 => np.linalg.eigh(A+A.swapaxes(1,2))[1]**2   (B+B.T).eigvalsh() => np.linalg.eigvalsh(B+B.T)
f: A.solve(C.T) => np.linalg.solve(A,C.T)   C.lstsq(C@B)[0] => np.linalg.pinv(C)@C@B   C.T.triangular_solve(B)[0] => np.linalg.solve(np.triu(B),C.T)
f~: C.matrix_rank() => np.linalg.matrix_rank(C)
C.newton_schulz(1,(2,-1.5,0.5)) => 2*C/C.norm() - 1.5*C@C.T@C/C.norm()**3 + 0.5*C@C.T@C@C.T@C/C.norm()**5
fc: A.lu()[0]   A.mT.lu()[0]   C.lu()[0]   D.lu()[0]   M.linalg.lu(B)   M.linalg.lu(C)   M.linalg.lu(D)   M.linalg.lu_solve(*A.lu(),A[:,:,:2])   M.linalg.lu_solve(*B.lu(),B[:2],left=False)   M.linalg.lu_solve(*B.lu(),B,adjoint=True)   C.T.lu_solve(B.lu()[0],B.lu()[1])   C.lu()[0].lu_unpack(C.lu()[1]) => torch.lu_unpack(*C.lu())
fc: M.linalg.inv_ex(A)   M.linalg.solve_ex(B,C.T)   M.linalg.cholesky_ex(A@A.mH)   C.T.cholesky_solve((B@B.mH).cholesky())   C.T.cholesky_solve((B@B.mH).cholesky(upper=True),True)   (B@B.mH).cholesky().cholesky_inverse()   (B@B.mH).cholesky(True).cholesky_inverse(upper=True)
fc: C.orgqr(C[0]*0.3)   M.linalg.householder_product(D[:,:,:3]*1.0,D[:,0,:2]*0.5)   C.ormqr(C[0]*0.3,C)   C.ormqr(C[0]*0.3,C.T,False)   C.ormqr(C[0]*0.3,C,transpose=True)   M.linalg.tensorinv(A.reshape(2,9)[:,:8].reshape(2,2,4),2)   M.linalg.tensorsolve(D[:,:2,:].reshape(4,2,2)*1.0,C[:,0])   M.linalg.vander(C[0])   M.linalg.vander(C,N=2)
# PyTorch's gradient of vander fails
f~: C[0].vander(4)   C[0].vander(increasing=True)   C.geqrf()   A.geqrf()   A.lu(get_infos=True)   M.linalg.cholesky_ex(N)[1]   M.linalg.cholesky_ex(-N)[1]   M.linalg.inv_ex(Z)[1]   M.linalg.lu_factor_ex(Z)
f: C.svd_lowrank(2)[1] => torch.linalg.svdvals(C)[:2]   C.pca_lowrank()[1] => torch.linalg.svdvals(C-C.mean(0))   C.svd_lowrank(2,M=C*0.5)[2]**2 => (torch.linalg.svd(C*0.5)[2][:2].mT)**2
"""

MISTAKES = """
C.cholesky_inverse()      !   cholesky_inverse: x is 4 by 3, and not square
M.linalg.inv_ex(Z, check_errors=True)   !   inv_ex: info is [2, 0]
M.linalg.tensorinv(A, 1)  !   tensorinv: of the first 1 axes
M.linalg.tensorsolve(A, C)   !   tensorsolve: A is no square matrix
C[0].lu()                 !   lu_factor: a matrix has two axes, and x has 1
C[0].geqrf()              !   geqrf: a matrix has two axes, and x has 1
C.eigh()                  !   eigh: x is 4 by 3, and not square
C.eigvalsh()              !   x is 4 by 3, and not square
C.slogdet()               !   slogdet: x is 4 by 3, and not square
C.logdet()                !   x is 4 by 3, and not square
C.matrix_exp()            !   matrix_exp: x is 4 by 3, and not square
C[0].qr()                 !   qr: a matrix has two axes, and x has 1
C[0].pinv()               !   pinv: a matrix has two axes, and x has 1
C[0].pinverse()           !   a matrix has two axes, and x has 1
C[0].matrix_rank()        !   matrix_rank: a matrix has two axes, and x has 1
C.lstsq(C[0])             !   lstsq: a matrix has two axes, and x has 1
C.triangular_solve(C[0])  !   a matrix has two axes, and x has 1
B.cond('x')               !   "fro", "nuc"
C.inv()                    !   inv: x is 4 by 3, and not square
C[0].det()                 !   det: a matrix has two axes, and x has 1
(B*0).inverse()            !   inv: singular matrix
(B*0-1).cholesky()         !   cholesky: matrix is not positive definite
B.long().svd()             !   svd: x is int64, not float32, float64 or complex
A.solve(C)                 !   solve: A @ X = B has no X
A.trace()                  !   trace: x has 3 axes, not 2
C.matrix_power(2)          !   matrix_power: x is not a square matrix
y.triangular_solve(y)     !   solve_triangular: x is 3 by 4, and not square
v.newton_schulz(3)        !   newton_schulz: a matrix has two axes, and x has 1
"""
